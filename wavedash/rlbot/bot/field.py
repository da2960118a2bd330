"""Field: what a car's wheels and body touch, found by geometry, because packets do not say it.

Floor, ceiling and side walls are planes. Ramps, corners, back walls and goals are triangles of the quarter of the field where x
and y are positive; the other three quarters are its mirror images. By the rules of RocketSim, a wheel touches what a ray down
from its mount hits, and the body touches what a box with round edges comes close to.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .constants import (
    BOX_MARGIN,
    BOX_MARGIN_SHARE,
    CEILING_Z,
    CONTACT_SHARE,
    HITBOXES,
    RAY_SHORTENED,
    SIDE_WALL_X,
    WHEELS,
)

Array = NDArray[Any]
REACH = 110.0
"""No point of a car that matters here is farther from its origin, in uu"""
CELL = 128.0
"""Side in uu of the cells by which near triangles are kept"""
DEEPEST = 20.0
"""uu that a body is in a surface at most: what the fastest car moves in a tick"""
EDGE = 1e-4
"""How far outside of a triangle, as a share of it, a point still counts as inside: at an edge it belongs to both sides"""


class Shape:
    """Wheels and body of a hitbox, in the car's frame."""

    def __init__(self, name: str, offset: Array) -> None:
        mounts, rays = [], []
        for radius, suspension, (x, y, z) in WHEELS[name]:
            mounts += [(x, y, z), (x, -y, z)]
            rays += [suspension + radius - RAY_SHORTENED] * 2
        self.mounts, self.rays = np.array(mounts), np.array(rays)
        """[4, 3] and [4]: front right, front left, back right, back left; where rays begin, and their lengths"""
        size = np.array(HITBOXES[name])
        self.margin = min(BOX_MARGIN, BOX_MARGIN_SHARE * float(size.min()))
        self.center, self.half = offset, 0.5 * size - BOX_MARGIN + self.margin
        signs = np.array([[x, y, z] for x in (1, -1) for y in (1, -1) for z in (1, -1)])
        self.corners, self.core = offset + signs * self.half, offset + signs * (self.half - self.margin)
        """[8, 3]: corners of the box, and of what is left of it without its round edges"""
        self.threshold = CONTACT_SHARE * float(np.linalg.norm(self.half) + np.linalg.norm(offset))

    def wheel_rays(self, position: Array, rotation: Array) -> tuple[Array, Array]:
        """[4, 3] each: where the rays of the wheels begin, and where they lead from there."""
        return position + self.mounts @ rotation.T, self.rays[:, None] * -rotation[:, 2]


def shape_of(size: Array, offset: Array) -> Shape:
    """The shape of the hitbox that is most like this one of a packet."""
    return Shape(min(HITBOXES, key=lambda name: float(np.abs(np.array(HITBOXES[name]) - size).sum())), offset)


class Field:
    """`triangles` [n, 3, 3]: those of the quarter, in uu."""

    def __init__(self, triangles: Array) -> None:
        self.a = triangles[:, 0].astype(np.float64)
        self.ab, self.ac = triangles[:, 1] - self.a, triangles[:, 2] - self.a
        normal = np.cross(self.ab, self.ac)
        self.area2 = (normal * normal).sum(1)
        self.normal = normal / np.sqrt(self.area2)[:, None]
        self.low, self.high = triangles.min(1), triangles.max(1)
        self.near: dict[tuple[int, int, int], Array] = {}
        """The triangles near each cell of the quarter in which a car has been"""

    def wheels(self, shape: Shape, position: Array, rotation: Array) -> Array:
        """[4] bool: the wheels that touch the field."""
        sources, rays = shape.wheel_rays(position, rotation)
        targets = sources + rays
        hit = (sources[:, 2] * targets[:, 2] < 0) | ((sources[:, 2] - CEILING_Z) * (targets[:, 2] - CEILING_Z) < 0)
        hit |= (np.abs(sources[:, 0]) - SIDE_WALL_X) * (np.abs(targets[:, 0]) - SIDE_WALL_X) < 0
        for near, mirror in () if hit.all() else self._quarters(position):
            hit = hit | self._hits(near, sources * mirror, rays * mirror)
        return hit

    def body(self, shape: Shape, position: Array, rotation: Array) -> Array | None:
        """The normal of the field where the body touches it; None: it does not."""
        corners = position + shape.corners @ rotation.T
        low, high = corners.min(0), corners.max(0)
        if low[2] < shape.threshold:
            return np.array([0.0, 0.0, 1.0])
        if CEILING_Z - high[2] < shape.threshold:
            return np.array([0.0, 0.0, -1.0])
        if SIDE_WALL_X + low[0] < shape.threshold or SIDE_WALL_X - high[0] < shape.threshold:
            return np.array([-np.sign(position[0]), 0.0, 0.0])
        core = position + shape.core @ rotation.T
        for near, mirror in self._quarters(position):
            ends = low * mirror, high * mirror
            least, most = np.minimum(*ends), np.maximum(*ends)
            near = near[((self.low[near] <= most) & (least <= self.high[near])).all(1)]  # Bullet tests no others
            if len(near):
                normal = self._touched(near, core * mirror, position * mirror, shape.margin + shape.threshold)
                if normal is not None:
                    return normal * mirror
        return None

    def _quarters(self, position: Array) -> Iterator[tuple[Array, Array]]:
        """For every quarter of the field that a car reaches: the triangles near it, and the signs that mirror the car there."""
        x, y, z = position.tolist()
        for sign_x in (1.0, -1.0):
            for sign_y in (1.0, -1.0):
                if sign_x * x > -REACH and sign_y * y > -REACH:
                    near = self._near((int(sign_x * x // CELL), int(sign_y * y // CELL), int(z // CELL)))
                    if len(near):
                        yield near, np.array([sign_x, sign_y, 1.0])

    def _near(self, cell: tuple[int, int, int]) -> Array:
        """The triangles near a car in this cell."""
        if cell not in self.near:
            corner = np.array(cell) * CELL
            low, high = corner - REACH, corner + (CELL + REACH)
            self.near[cell] = np.flatnonzero(((self.low < high) & (low < self.high)).all(1))
        return self.near[cell]

    def _hits(self, near: Array, sources: Array, rays: Array) -> Array:
        """[4] bool: whether each ray hits a triangle, from either side."""
        normal = self.normal[near]
        before = ((sources[:, None] - self.a[near]) * normal).sum(-1)  # [4, n]
        after = before + rays @ normal.T
        crosses = before * after < 0
        if not crosses.any():
            return np.zeros(len(sources), bool)
        share = np.where(crosses, before / np.where(crosses, before - after, 1.0), 0.0)
        inside = self._inside(near, sources[:, None] + share[..., None] * rays[:, None])
        hit: Array = (crosses & inside).any(1)
        return hit

    def _touched(self, near: Array, corners: Array, center: Array, reach: float) -> Array | None:
        """The normal, towards the car, of a triangle that a corner is closer to than `reach`."""
        normal = self.normal[near]
        side = np.sign(((center - self.a[near]) * normal).sum(-1))
        height = ((corners[:, None] - self.a[near]) * normal).sum(-1)  # [8, n]
        touches = (height * side < reach) & (height * side > -DEEPEST)
        if not touches.any():
            return None
        touches &= self._inside(near, corners[:, None] - height[..., None] * normal)
        triangles = touches.any(0)
        if not triangles.any():
            return None
        last = int(np.flatnonzero(triangles)[-1])
        found: Array = normal[last] * side[last]
        return found

    def _inside(self, near: Array, points: Array) -> Array:
        """Whether points [k, n, 3] of the planes of triangles lie in these."""
        at = points - self.a[near]
        normal = self.normal[near] / np.sqrt(self.area2[near])[:, None]
        u = (np.cross(at, self.ac[near]) * normal).sum(-1)
        v = (np.cross(self.ab[near], at) * normal).sum(-1)
        inside: Array = (u >= -EDGE) & (v >= -EDGE) & (u + v <= 1 + EDGE)
        return inside
