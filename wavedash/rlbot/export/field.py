"""The field's geometry as a bot carries it: the triangles of one quarter, from the meshes that RocketSim reads."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wavedash.rocket.rocketsim.package import collision_meshes
from wavedash.rocket.sim.collision.bake import UU, face, read_mesh

SMALLEST = 1e-3
"""uu2: what is smaller has no direction"""


def quarter() -> NDArray[np.float32]:
    """[n, 3, 3]: the triangles where x and y are positive; the other quarters are their mirror images."""
    triangles = np.concatenate([read_mesh(file) for file in sorted(collision_meshes().glob("soccar/*.cmf"))]) * np.float32(UU)
    proper = np.linalg.norm(face(triangles), axis=-1) > SMALLEST
    return np.ascontiguousarray(triangles[proper & (triangles[..., :2].mean(1) > 0).all(-1)])
