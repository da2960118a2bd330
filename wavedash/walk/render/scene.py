"""What is in a picture beside the ground, and how it looks: shapes of the robot, light and colours."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import warp as wp

from wavedash.errors import UserError
from wavedash.walk.render.kernels import picture as kernels
from wavedash.walk.render.kernels import shapes as shape_kernels

Colour = tuple[float, float, float]
Numbers = npt.NDArray[np.floating[Any]]

SPHERE, CAPSULE, CYLINDER, BOX = 2, 3, 5, 6
"""MuJoCo's numbers of kinds of geoms, mjtGeom"""
DRAWN = (SPHERE, CAPSULE, CYLINDER, BOX)


@dataclass(frozen=True)
class Shapes:
    """G shapes, as the arrays of MuJoCo have them: `kind` [G] (`geom_type`), `position` [G, 3] (`geom_xpos`), `rotation`
    [G, 3, 3] (`geom_xmat`), `size` [G, 3] (`geom_size`), `colour` [G, 3] or more, red, green, blue from 0 to 1 (`geom_rgba`).

    Kinds that are not drawn (height fields, planes, meshes) are left out, and so is what is transparent: a fourth colour of 0.
    """

    kind: npt.NDArray[np.integer[Any]]
    position: Numbers
    rotation: Numbers
    size: Numbers
    colour: Numbers

    def __post_init__(self) -> None:
        counts = [len(self.kind), len(self.position), len(self.rotation), len(self.size), len(self.colour)]
        if len(set(counts)) > 1:
            raise UserError("each shape needs a kind, a position, a rotation, a size and a colour, but there are "
                            f"{counts} of them")

    def struct(self, device: Any) -> Any:
        """The shapes as the kernel takes them."""
        colour = np.asarray(self.colour, np.float32)
        drawn = np.isin(self.kind, DRAWN)
        if colour.ndim == 2 and colour.shape[1] > 3:
            drawn &= colour[:, 3] > 0
        position, size = (np.asarray(x, np.float32)[drawn] for x in (self.position, self.size))
        rotation = np.asarray(self.rotation, np.float32).reshape(-1, 3, 3)[drawn]
        struct: Any = shape_kernels.Shapes()  # Any, because its fields take Python's numbers
        struct.kind = wp.array(np.asarray(self.kind, np.int32)[drawn], dtype=wp.int32, device=device)
        struct.position = wp.array(position, dtype=wp.vec3, device=device)
        struct.rotation = wp.array(rotation, dtype=wp.mat33, device=device)
        struct.size = wp.array(size, dtype=wp.vec3, device=device)
        struct.colour = wp.array(colour[drawn, :3], dtype=wp.vec3, device=device)
        center = position.mean(0) if len(position) else np.zeros(3, np.float32)
        reach = np.linalg.norm(position - center, axis=1) + np.abs(size).sum(1)
        struct.center, struct.radius = wp.vec3(*center.tolist()), float(reach.max(initial=0.0))
        return struct


NOTHING = Shapes(np.zeros(0, np.int32), np.zeros((0, 3)), np.zeros((0, 3, 3)), np.zeros((0, 3)), np.zeros((0, 3)))
"""The ground alone"""


@dataclass(frozen=True)
class Look:
    """Light and colours of a picture."""

    light: Colour = (-0.45, 0.35, 0.8)
    """Direction towards the sun, of any length"""
    sun: float = 0.72
    """Brightness of what faces the sun"""
    ambient: float = 0.46
    """Brightness of what is in the shade"""
    low: Colour = (0.33, 0.42, 0.50)
    """Colour of the lowest ground; `middle` and `high` are those of ground half-way up and at the top"""
    middle: Colour = (0.56, 0.62, 0.55)
    high: Colour = (0.86, 0.78, 0.62)
    wall: Colour = (0.30, 0.31, 0.34)
    """Colour of the sides of a tile"""
    line: float = 0.5
    """Distance of the lines of the grid on the ground, m; 0: there are none"""
    horizon: Colour = (0.90, 0.93, 0.96)
    zenith: Colour = (0.52, 0.68, 0.88)
    below: Colour = (0.70, 0.73, 0.77)
    """Colour below the horizon, where there is no ground"""

    def struct(self, bottom: float, top: float) -> Any:
        """The look of ground between these heights, as the kernel takes it."""
        struct: Any = kernels.Look()
        light = np.array(self.light) / np.linalg.norm(self.light)
        struct.light = wp.vec3(*light.tolist())
        for name in ("low", "middle", "high", "wall", "horizon", "zenith", "below"):
            setattr(struct, name, wp.vec3(*getattr(self, name)))
        struct.sun, struct.ambient, struct.line = self.sun, self.ambient, self.line
        struct.bottom, struct.top = bottom, top
        return struct
