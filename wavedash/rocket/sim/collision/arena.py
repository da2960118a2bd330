"""The field as kernels see it: four planes, 8,020 triangles and a grid that lists the triangles near each cell.

Floor, ceiling and side walls are planes; back walls, goals, corners and curves are triangles. A body looks up the cell of its
origin once and finds every triangle that it can touch; over most of the field there is none.
"""
from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from wavedash.errors import UserError
from wavedash.rocket.rocketsim.package import collision_meshes
from wavedash.rocket.sim.collision.bake import CELL, GRID_LOW, GRID_SHAPE, Baked, bake
from wavedash.rocket.sim.collision.baked_file import BAKED_FILE, read_baked, write_baked
from wavedash.rocket.sim.constants import ARENA_CEILING_Z, ARENA_WALL_X
from wavedash.rocket.sim.kernels.struct_io import loader, stride_of, words_of

wp.set_module_options({"enable_backward": False})

FORMAT = 1
"""Format of the baked file; when it changes, every user's cache is baked anew"""

CELLS_X, CELLS_Y, CELLS_Z = (wp.constant(cells) for cells in GRID_SHAPE)
LOW_X, LOW_Y, LOW_Z = (wp.constant(low) for low in GRID_LOW)
PER_UU = wp.constant(1.0 / CELL)
OPEN_X, OPEN_Y, OPEN_Z = wp.constant(3584.0), wp.constant(4352.0), wp.constant(1728.0)
OPEN_CORNER = wp.constant(7232.0)
"""Open space: within these |x|, |y|, z and |x| + |y| no cell of the grid lists a triangle"""
RAY_EDGE = wp.constant(-1.0e-4)
"""How far outside a triangle a ray still hits it, as a share of the triangle"""


@wp.struct
class Triangle:
    """A triangle of the arena's mesh, with corners a, b, c."""

    a: wp.vec3
    b: wp.vec3
    c: wp.vec3
    normal: wp.vec3
    """Unit length; the corners run counterclockwise as seen from where it points"""
    offset: wp.float32
    """Distance of its plane from the origin, along the normal"""
    angles: wp.vec3
    """Angles to the neighbours across ab, bc and ca, see `bake.Baked.angles`"""
    mesh: wp.int32
    """0 ... 15: the mesh file that it comes from"""


load_triangle = loader(Triangle)


@wp.struct
class ArenaGeometry:
    """The triangles near a cell are those numbered items[first[cell]] ... items[first[cell + 1] - 1], in ascending order."""

    triangles: wp.array2d(dtype=wp.int32)
    """[triangles, words]"""
    first: wp.array(dtype=wp.int32)
    items: wp.array(dtype=wp.int32)
    planes: wp.array(dtype=wp.vec4)
    """Normal and offset of the triangle of each item, so that they lie in the order in which they are read"""
    boxes: wp.array2d(dtype=wp.int32)
    """[items, 4]: the axis-aligned box of each triangle as eight numbers of 16 bits, see `aabb_query`. It rules out half of the
    triangles around a car in a few instructions."""


@wp.func
def triangle_of(arena: ArenaGeometry, item: int) -> Triangle:
    """The triangle that an item stands for."""
    return load_triangle(arena.triangles, arena.items[item], 0)


@wp.func_native("""
    const float bounds[8] = {high[0], high[1], high[2], 0.0f, -low[0], -low[1], -low[2], 0.0f};
    wp::vec_t<4, wp::int32> query;
    for (int i = 0; i < 4; ++i) {
        const int first = (int)ceilf(bounds[2 * i] * 4.0f), second = (int)ceilf(bounds[2 * i + 1] * 4.0f);
        query[i] = (int)(((unsigned)first & 0xffffu) | (unsigned)second << 16);
    }
    return query;
""")
def aabb_query(low: wp.vec3, high: wp.vec3) -> wp.vec4i:
    """A box for `may_overlap`, as eight numbers of 16 bits in quarters of uu, rounded outwards: its greatest x, y, z and a
    zero, then its least x, y, z, negated, and a zero. A box overlaps it if none of its own eight numbers is greater."""
    return wp.vec4i()


@wp.func_native("""
#ifdef __CUDA_ARCH__
    const int4 box = *(const int4*)((const int*)boxes.data + 4 * (size_t)item);
    return ((__vmaxs2(box.x, query[0]) ^ query[0]) | (__vmaxs2(box.y, query[1]) ^ query[1])
            | (__vmaxs2(box.z, query[2]) ^ query[2]) | (__vmaxs2(box.w, query[3]) ^ query[3])) == 0;
#else
    short box[8], most[8];
    memcpy(box, (const int*)boxes.data + 4 * (size_t)item, 16);
    memcpy(most, &query, 16);
    int outside = 0;
    for (int i = 0; i < 8; ++i)
        outside |= box[i] > most[i];
    return outside == 0;
#endif
""")
def may_overlap(boxes: wp.array2d(dtype=wp.int32), item: int, query: wp.vec4i) -> bool:
    """Whether the box of a triangle overlaps that of `aabb_query`, or nearly so."""
    return False


@wp.func_native("""
    const float* place = (const float*)planes.data + 4 * (size_t)item;
#ifdef __CUDA_ARCH__
    const float4 plane = *(const float4*)place;
    return wp::vec_t<4, wp::float32>(plane.x, plane.y, plane.z, plane.w);
#else
    return wp::vec_t<4, wp::float32>(place[0], place[1], place[2], place[3]);
#endif
""")
def plane_of(planes: wp.array(dtype=wp.vec4), item: int) -> wp.vec4:
    """Normal and offset of the plane of an item's triangle."""
    return wp.vec4()


@wp.func
def cell_of(position: wp.vec3) -> int:
    """Number of the grid cell at a position; outside the grid, that of the nearest one."""
    x = wp.clamp(int(wp.floor((position[0] - LOW_X) * PER_UU)), 0, CELLS_X - 1)
    y = wp.clamp(int(wp.floor((position[1] - LOW_Y) * PER_UU)), 0, CELLS_Y - 1)
    z = wp.clamp(int(wp.floor((position[2] - LOW_Z) * PER_UU)), 0, CELLS_Z - 1)
    return (x * CELLS_Y + y) * CELLS_Z + z


@wp.func
def is_over_open_floor(position: wp.vec3) -> bool:
    """Whether a car or ball there can touch nothing of the field but the floor."""
    x = wp.abs(position[0])
    y = wp.abs(position[1])
    return x < OPEN_X and y < OPEN_Y and x + y < OPEN_CORNER and position[2] < OPEN_Z


@wp.func
def ray_hits_planes(source: wp.vec3, target: wp.vec3):
    """The first of the four planes that a ray hits: (whether, 1 or 0; fraction of the ray; normal towards the source)."""
    hit = int(0)
    closest = float(1.0)
    normal = wp.vec3(0.0, 0.0, 0.0)
    if source[2] * target[2] < 0.0:
        hit = 1
        closest = source[2] / (source[2] - target[2])
        normal = wp.vec3(0.0, 0.0, wp.sign(source[2]))
    below = source[2] - ARENA_CEILING_Z
    if below * (target[2] - ARENA_CEILING_Z) < 0.0:
        fraction = below / (source[2] - target[2])
        if fraction < closest:
            hit = 1
            closest = fraction
            normal = wp.vec3(0.0, 0.0, wp.sign(below))
    wall = wp.sign(source[0]) * ARENA_WALL_X
    before = source[0] - wall
    if before * (target[0] - wall) < 0.0:
        fraction = before / (source[0] - target[0])
        if fraction < closest:
            hit = 1
            closest = fraction
            normal = wp.vec3(wp.sign(before), 0.0, 0.0)
    return hit, closest, normal


@wp.func
def is_inside(t: Triangle, point: wp.vec3) -> bool:
    """Whether a point of its plane lies in a triangle, or outside by no more than RAY_EDGE."""
    area = wp.dot(wp.cross(t.b - t.a, t.c - t.a), t.normal)
    least = RAY_EDGE * area
    to_a = t.a - point
    to_b = t.b - point
    to_c = t.c - point
    return (
        wp.dot(wp.cross(to_a, to_b), t.normal) >= least
        and wp.dot(wp.cross(to_b, to_c), t.normal) >= least
        and wp.dot(wp.cross(to_c, to_a), t.normal) >= least
    )


# Loading ----------------------------------------------------------------------------------------------------------------------


def load_arena(device: Any) -> Any:
    """The field in a device's memory."""
    return _on_device(str(wp.get_device(device)))


@cache
def _on_device(device: str) -> Any:
    baked = baked_arena()
    triangles = np.zeros(len(baked.mesh), Triangle.numpy_dtype())
    triangles["a"], triangles["b"], triangles["c"] = baked.corners.swapaxes(0, 1)
    triangles["normal"], triangles["angles"], triangles["mesh"] = baked.normals, baked.angles, baked.mesh
    triangles["offset"] = (baked.normals.astype(np.float64) * baked.corners[:, 0]).sum(axis=1)
    planes = np.concatenate([triangles["normal"], triangles["offset"][:, None]], axis=1)[baked.items]
    arena = ArenaGeometry()
    words = np.zeros((len(triangles), stride_of(Triangle)), np.int32)
    words[:, :words_of(Triangle)] = triangles.view(np.int32).reshape(len(triangles), -1)
    arena.triangles = wp.array(words, dtype=wp.int32, device=device)
    arena.first = wp.array(baked.first, dtype=wp.int32, device=device)
    arena.items = wp.array(baked.items, dtype=wp.int32, device=device)
    arena.planes = wp.array(planes, dtype=wp.vec4, device=device)
    arena.boxes = wp.array(_boxes(baked.corners)[baked.items], dtype=wp.int32, device=device)
    return arena


def _boxes(corners: NDArray[np.float32]) -> NDArray[np.int32]:
    """[triangles, 4] words: the least x, y, z of triangles, and the greatest, negated, to be compared with `aabb_query`."""
    halves = np.full((len(corners), 2, 4), -(1 << 15), np.int16)
    halves[:, 0, :3], halves[:, 1, :3] = np.floor(corners.min(axis=1) * 4), np.floor(-corners.max(axis=1) * 4)
    return halves.reshape(len(corners), 8).view(np.int32)


@cache
def baked_arena() -> Baked:
    """The arena from the file that an environment variable names, from this user's cache, or baked from the meshes."""
    named = os.environ.get(BAKED_FILE)
    if named:
        return read_baked(Path(named))
    files = sorted((collision_meshes() / "soccar").glob("*.cmf"))
    file = cache_file(files)
    if file.exists():
        try:
            return read_baked(file)
        except UserError:
            pass  # it is damaged or belongs to another user: bake again
    baked = bake(files)
    write_baked(baked, file)
    return baked


def cache_file(files: list[Path]) -> Path:
    """The cache file of the arena that is baked from these meshes."""
    key = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    named = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "wavedash" / f"arena-{FORMAT}-{key}.npz"
