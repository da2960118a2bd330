"""Noise: random heights that do not depend on the resolution of a map, because they are drawn on a lattice of their own."""
from __future__ import annotations

import numpy as np

from wavedash.walk.terrain.layout import Layout

OCTAVES = 4
COARSEST = 0.8
"""m between the nodes of the first octave of fractal noise; every octave has half the spacing and half the height of the one
before"""


def lattice_noise(layout: Layout, spacing: float, random: np.random.Generator) -> np.ndarray:
    """[Y, X]: independent heights between -1 and 1 at nodes `spacing` m apart, linear between them."""
    nodes = random.uniform(-1.0, 1.0, (int(layout.width / spacing) + 2, int(layout.length / spacing) + 2))
    u, v = (layout.x - layout.x[0, 0]) / spacing, (layout.y - layout.y[0, 0]) / spacing
    column, row = u.astype(np.int64), v.astype(np.int64)
    u, v = u - column, v - row
    near = (1 - u) * nodes[row, column] + u * nodes[row, column + 1]
    far = (1 - u) * nodes[row + 1, column] + u * nodes[row + 1, column + 1]
    return (1 - v) * near + v * far


def fractal_noise(layout: Layout, random: np.random.Generator) -> np.ndarray:
    """[Y, X]: hills with smaller hills on them, between -1 and 1."""
    octaves = [0.5 ** i * lattice_noise(layout, COARSEST * 0.5 ** i, random) for i in range(OCTAVES)]
    return sum(octaves[1:], octaves[0]) / (2.0 - 0.5 ** (OCTAVES - 1))
