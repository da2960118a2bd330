"""Turns the collision meshes of the standard field into the arrays that kernels read.

RocketSim hands the meshes to Bullet, whose answers depend on more than the triangles: on the order in which its tree visits
them (two bodies have four contact points at most, so the order matters) and on the angle at every shared edge (contacts near an
edge get the normal of a face). Both are worked out here once, and a grid lists the triangles near every cell.
"""
from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

UU = 50.0
"""uu per unit of the mesh files, which is Bullet's"""
CELL = 64.0
"""Side of a grid cell in uu. With half of it lists near walls are a fifth shorter and need seven times the memory; with twice
as much they are a third longer"""
REACH = 100.0
"""A cell lists the triangles within this distance of it, in uu. No point of a car or ball is as far from its origin"""
GRID_LOW = (-4096.0, -6016.0, 0.0)
GRID_SHAPE = (128, 188, 32)
"""Cells along x, y, z: from wall to wall, net to net, floor to ceiling"""
BOUNDARY = 7.0
"""Stands for the angle of an edge that only one triangle of its mesh has; Bullet's edge rule does not apply there"""

Array = NDArray[np.float32]


class Baked(NamedTuple):
    """The field. Triangles are sorted by mesh, and within a mesh as Bullet visits them."""

    corners: Array
    """[triangles, 3, 3] in uu"""
    normals: Array
    """[triangles, 3]: unit vectors, to the side from which the corners run counterclockwise"""
    angles: Array
    """[triangles, 3]: turn from this triangle's normal to that of its neighbour across the edge from corner k to k + 1, about
    the direction from k + 1 to k. Negative: convex. Positive: concave. Zero: flat. `BOUNDARY`: no neighbour"""
    mesh: NDArray[np.int32]
    """[triangles]: number of the mesh file"""
    first: NDArray[np.int32]
    """[cells + 1]: where a cell's list begins in `items`"""
    items: NDArray[np.int32]
    """Triangles near the first cell, then those near the second, ..."""


def bake(files: list[Path]) -> Baked:
    """The arena of all mesh files."""
    corners, angles, mesh = [], [], []
    for number, file in enumerate(files):
        points = read_mesh(file)
        points = points[visiting_order(points)]
        corners.append(points)
        angles.append(edge_angles(points))
        mesh.append(np.full(len(points), number, np.int32))
    all_corners = np.concatenate(corners) * np.float32(UU)
    first, items = fill_grid(all_corners)
    return Baked(all_corners, unit(face(all_corners)), np.concatenate(angles), np.concatenate(mesh), first, items)


def read_mesh(file: Path) -> Array:
    """Corners [triangles, 3, 3] of a .cmf file. It holds two counts, the indices of corners, then positions."""
    data = file.read_bytes()
    triangles, vertices = np.frombuffer(data, np.int32, 2)
    indices = np.frombuffer(data, np.int32, 3 * triangles, 8).reshape(-1, 3)
    positions = np.frombuffer(data, np.float32, 3 * vertices, 8 + 12 * int(triangles)).reshape(-1, 3)
    return positions[indices]


def face(corners: Array) -> Array:
    """Normals of triangles, as long as twice their area."""
    return np.cross(corners[..., 1, :] - corners[..., 0, :], corners[..., 2, :] - corners[..., 0, :])


def unit(vectors: Array) -> Array:
    """Vectors of length 1."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


# Bullet's tree ----------------------------------------------------------------------------------------------------------------

_SMALL_TREE = 64
"""Greatest number of leaves of a tree that Bullet walks at once (2,048 bytes); it walks larger ones part by part"""


def visiting_order(corners: Array) -> NDArray[np.int64]:
    """The order in which Bullet's quantized tree reports a mesh's triangles. A query leaves some out and keeps the order."""
    center = _quantized_centers(corners)
    order = np.arange(len(corners))

    def split(start: int, end: int) -> int:
        """Sorts a node's leaves into its children, larger coordinates first. Returns where the second child begins."""
        points = center[order[start:end]]
        count = end - start
        mean = np.add.accumulate(points, dtype=np.float32)[-1] * (np.float32(1.0) / np.float32(count))
        spread = (points - mean) ** 2
        axis = int(np.argmax(np.add.accumulate(spread, dtype=np.float32)[-1]))
        at = start
        for i in range(start, end):
            if center[order[i], axis] > mean[axis]:
                order[i], order[at] = order[at], order[i]
                at += 1
        third = count // 3
        return at if start + third < at < end - 1 - third else start + count // 2

    def walk(start: int, end: int) -> list[tuple[int, int]]:
        """The ranges of leaves in the order of Bullet's list of parts: parts inside large children come before small ones."""
        if end - start == 1:
            return [(start, end)]
        at = split(start, end)
        left, right = walk(start, at), walk(at, end)
        if end - start <= _SMALL_TREE:
            return [(start, end)]
        large = (left if at - start > _SMALL_TREE else []) + (right if end - at > _SMALL_TREE else [])
        return large + (left if at - start <= _SMALL_TREE else []) + (right if end - at <= _SMALL_TREE else [])

    return np.concatenate([order[start:end] for start, end in walk(0, len(corners))])


def _quantized_centers(corners: Array) -> Array:
    """Centers of the triangles' boxes after Bullet's rounding to 16 bits, which decides ties."""
    low, high = corners.min(axis=1), corners.max(axis=1)
    thin = high - low < np.float32(0.002)
    low, high = np.where(thin, low - np.float32(0.001), low), np.where(thin, high + np.float32(0.001), high)
    margin, steps = np.float32(1.0), np.float32(65533.0)
    origin, end = corners.min(axis=(0, 1)) - margin - margin, corners.max(axis=(0, 1)) + margin
    scale = steps / (end - origin)
    top = ((end - origin) * scale + np.float32(1.0)).astype(np.uint16) | 1
    end = np.maximum(end, top / scale + origin + margin)
    scale = (steps / (end - origin)).astype(np.float32)
    rounded_low = ((low - origin) * scale).astype(np.uint16) & 0xFFFE
    rounded_high = ((high - origin) * scale + np.float32(1.0)).astype(np.uint16) | 1
    back = [(rounded.astype(np.float32) / scale + origin).astype(np.float32) for rounded in (rounded_low, rounded_high)]
    return np.float32(0.5) * (back[1] + back[0])


# Edges ------------------------------------------------------------------------------------------------------------------------

_SAME_POINT = 1e-4
"""Corners closer than this, in the files' unit, are the same vertex"""
_FLAT = 1e-4
"""Squared sine of the angle below which two triangles count as one plane"""


def edge_angles(corners: Array) -> Array:
    """`Baked.angles` of one mesh, as Bullet's internal-edge utility computes them. Where an edge has several neighbors, the
    last one that the tree visits counts."""
    vertex = _vertex_numbers(corners)
    angles = np.full((len(corners), 3), BOUNDARY, np.float32)
    a, edge, b = _neighbors(vertex, (face(corners) ** 2).sum(axis=1) >= _SAME_POINT**2)
    start, end = corners[a, edge], corners[a, (edge + 1) % 3]
    along = unit(end - start)
    other_a = corners[a, (edge + 2) % 3]
    shared = (vertex[b] == vertex[a, edge][:, None]) | (vertex[b] == vertex[a, (edge + 1) % 3][:, None])
    other_b = corners[b, np.argmin(shared, axis=1)]
    normal = unit(face(corners))[a]
    into_a = _towards(np.cross(along, normal), other_a - start)
    into_b = _towards(np.cross(along, unit(np.cross(start - end, other_b - end))), other_b - start)
    turn = np.linalg.norm(np.cross(into_a, into_b), axis=1)
    angle = np.float32(np.pi) - np.arctan2(turn, (into_a * into_b).sum(axis=1))
    convex = (normal * into_b).sum(axis=1) < 0
    signed = np.where(turn**2 < _FLAT, np.float32(0.0), np.where(convex, -angle, angle))
    for i, k, value in zip(a, edge, signed, strict=True):
        angles[i, k] = value
    return angles


def _vertex_numbers(corners: Array) -> NDArray[np.int64]:
    """[triangles, 3]: a number for each corner, the same for corners at the same place."""
    points = corners.reshape(-1, 3)
    places, inverse = np.unique(points, axis=0, return_inverse=True)
    near = ((places[:, None] - places[None]) ** 2).sum(axis=2) < _SAME_POINT**2
    return np.argmax(near, axis=1)[inverse.reshape(-1)].reshape(-1, 3)


def _neighbors(vertex: NDArray[np.int64], proper: NDArray[np.bool_]) -> tuple[NDArray[np.int64], ...]:
    """Triples of a triangle a, one of its edges (0 to 2), and a triangle b that has this edge but another third corner. For an
    edge, b ascends. `proper`: triangles with an area."""
    a, edge = np.nonzero(np.repeat(proper[:, None], 3, axis=1))
    ends = np.sort(np.stack([vertex[a, edge], vertex[a, (edge + 1) % 3]], axis=1), axis=1)
    _, shared = np.unique(ends, axis=0, return_inverse=True)  # the same number for edges with the same ends
    shared = shared.reshape(-1)
    by_edge = np.argsort(shared, kind="stable")
    begin = np.searchsorted(shared[by_edge], np.arange(shared.max() + 2))
    owners = (by_edge[begin[k]:begin[k + 1]] for k in range(shared.max() + 1))
    pairs = [(i, j) for same in owners for i in same for j in same if set(vertex[a[i]]) != set(vertex[a[j]])]
    i, j = np.array(pairs).T
    return a[i], edge[i], a[j]


def _towards(vectors: Array, goal: Array) -> Array:
    """Unit vectors, negated where they point away from `goal`."""
    return unit(vectors) * np.where((vectors * goal).sum(axis=1, keepdims=True) < 0, np.float32(-1.0), np.float32(1.0))


# The grid ---------------------------------------------------------------------------------------------------------------------


def fill_grid(corners: Array) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """`Baked.first` and `Baked.items`."""
    low, shape = np.array(GRID_LOW), np.array(GRID_SHAPE)
    cells, triangles = [], []
    for number, triangle in enumerate(corners.astype(np.float64)):
        begin = np.clip(np.floor((triangle.min(axis=0) - REACH - low) / CELL), 0, shape - 1).astype(int)
        end = np.clip(np.floor((triangle.max(axis=0) + REACH - low) / CELL), 0, shape - 1).astype(int) + 1
        x, y, z = (grid.reshape(-1) for grid in np.meshgrid(*map(np.arange, begin, end), indexing="ij"))
        center = low + (np.stack([x, y, z], axis=1) + 0.5) * CELL
        near = _distance_at_least(triangle, center) <= REACH
        cells.append(((x * shape[1] + y) * shape[2] + z)[near])
        triangles.append(np.full(near.sum(), number, np.int32))
    cell, items = np.concatenate(cells), np.concatenate(triangles)
    order = np.argsort(cell, kind="stable")
    first = np.searchsorted(cell[order], np.arange(shape.prod() + 1)).astype(np.int32)
    return first, items[order]


def _distance_at_least(triangle: NDArray[np.float64], center: NDArray[np.float64]) -> NDArray[np.float64]:
    """[cells]: a lower bound of the distance between a triangle and grid cells, measured along the line from a cell's center to
    the triangle's nearest point: the whole triangle lies beyond that point, and the cell ends at its farthest corner."""
    away = nearest_point(triangle, center) - center
    distance = np.maximum(np.linalg.norm(away, axis=1), 1e-9)
    return distance - 0.5 * CELL * np.abs(away).sum(axis=1) / distance


def nearest_point(triangle: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
    """[points, 3]: the point of a triangle nearest to each of the points."""
    normal = np.cross(triangle[1] - triangle[0], triangle[2] - triangle[0])
    normal /= max(np.linalg.norm(normal), 1e-12)
    best = points - ((points - triangle[0]) @ normal)[:, None] * normal
    inside = np.ones(len(points), bool)
    distance = np.full(len(points), np.inf)
    on_edge = np.empty_like(points)
    for start, end in zip(triangle, np.roll(triangle, -1, axis=0), strict=True):
        along = end - start
        inside &= (best - start) @ np.cross(normal, along) >= 0
        share = np.clip((points - start) @ along / max(along @ along, 1e-12), 0.0, 1.0)
        candidate = start + share[:, None] * along
        far = np.linalg.norm(points - candidate, axis=1)
        on_edge = np.where((far < distance)[:, None], candidate, on_edge)
        distance = np.minimum(far, distance)
    return np.where(inside[:, None], best, on_edge)
