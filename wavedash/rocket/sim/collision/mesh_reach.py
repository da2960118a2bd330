"""Which triangles of the arena are within reach of a car, and which of them its wheels stand on.

On a GPU lanes share the triangles around a car (`lanes.py`).
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.arena import (
    ArenaGeometry,
    Triangle,
    aabb_query,
    cell_of,
    is_inside,
    may_overlap,
    plane_of,
    triangle_of,
)
from wavedash.rocket.sim.collision.box_triangle import projected_half_size
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.kernels.lanes import Lanes, ballot, lane_min, popcount, sync_lanes
from wavedash.rocket.sim.kernels.struct_io import loader, room_of, storer
from wavedash.rocket.sim.mechanics.wheels import ray_length, wheel_mount

wp.set_module_options({"enable_backward": False})

WHEELS_ON_MESH = wp.constant(1)
BODY_NEAR_MESH = wp.constant(2)
NO_TRIANGLE, NOT_FIRST = wp.constant(-1), wp.constant(2**31 - 1)
CANDIDATES = 48
MAX_CANDIDATES = wp.constant(CANDIDATES)
"""Triangles around a car that are listed before they are looked at, so that threads do that side by side"""
CAR_REACH = wp.constant(110.0)
"""uu from a car's origin: no part of it reaches that far"""


@wp.struct
class MeshReach:
    """Triangles of the mesh that are within reach of a car."""

    near: wp.int32
    """0: nothing, WHEELS_ON_MESH: a wheel stands on something, BODY_NEAR_MESH: its body may touch something"""
    item: wp.vec4i
    """Item of the arena under each wheel; NO_TRIANGLE: none"""
    fraction: wp.vec4
    """Share of the ray down from each wheel's mount at which it meets the triangle"""


load_mesh_reach, store_mesh_reach = loader(MeshReach), storer(MeshReach)
MESH_REACH_WORDS = wp.constant(room_of(MeshReach))


@wp.func
def no_mesh_in_reach() -> MeshReach:
    """Nothing of the mesh is within reach."""
    reach = MeshReach()
    reach.item = wp.vec4i(NO_TRIANGLE, NO_TRIANGLE, NO_TRIANGLE, NO_TRIANGLE)
    reach.fraction = wp.vec4(1.0, 1.0, 1.0, 1.0)
    return reach


@wp.func
def boxes_overlap(t: Triangle, middle: wp.vec3, extent: wp.vec3) -> bool:
    """Whether the boxes along the world's axes around a triangle and a body overlap: Bullet looks no further if not."""
    for k in range(3):
        if wp.min(wp.min(t.a[k], t.b[k]), t.c[k]) > middle[k] + extent[k]:
            return False
        if wp.max(wp.max(t.a[k], t.b[k]), t.c[k]) < middle[k] - extent[k]:
            return False
    return True


@wp.func
def aabb_half_size(half: wp.vec3, rotation: wp.mat33) -> wp.vec3:
    """Half sizes along the world's axes of a box that is turned."""
    return wp.vec3(
        projected_half_size(half, wp.vec3(rotation[0, 0], rotation[0, 1], rotation[0, 2])),
        projected_half_size(half, wp.vec3(rotation[1, 0], rotation[1, 1], rotation[1, 2])),
        projected_half_size(half, wp.vec3(rotation[2, 0], rotation[2, 1], rotation[2, 2])),
    )


@wp.func
def is_mesh_near(arena: ArenaGeometry, shape: CarShape, position: wp.vec3, rotation: wp.mat33) -> bool:
    """Whether a triangle may be within reach of a car."""
    query = reach_query(shape, position, rotation)
    middle = position + rotation * shape.around_middle
    to_car = wp.transpose(rotation)
    cell = cell_of(position)
    end = arena.first[cell + 1]
    for first in range(arena.first[cell], end, 4):
        for i in range(4):  # four at a time, so that a GPU waits for four at once
            k = wp.min(first + i, end - 1)
            if may_overlap(arena.boxes, k, query):
                plane = plane_of(arena.planes, k)
                normal = wp.vec3(plane[0], plane[1], plane[2])
                if wp.abs(wp.dot(normal, middle) - plane[3]) <= projected_half_size(shape.around_half, to_car * normal):
                    return True
    return False


@wp.func
def reach_query(shape: CarShape, position: wp.vec3, rotation: wp.mat33) -> wp.vec4i:
    """A car with all that its wheels can reach, as a query."""
    middle = position + rotation * shape.around_middle
    extent = aabb_half_size(shape.around_half, rotation)
    return aabb_query(middle - extent, middle + extent)


@wp.func
def list_candidates(
    arena: ArenaGeometry, start: int, end: int, query: wp.vec4i, lanes: Lanes, candidates: wp.array2d(dtype=wp.int32)
):
    """Lists those of the arena's items start ... end - 1 whose boxes may overlap the query, in their order: (how many there
    are, the item to go on with when they are done with)."""
    count = int(0)
    resume = int(end)
    for first in range(start, end, lanes.count):
        if count + lanes.count > MAX_CANDIDATES:
            resume = first
            break
        k = first + lanes.lane
        found = bool(False)
        if k < end:
            found = may_overlap(arena.boxes, k, query)
        who = ballot(lanes.lane, lanes.count, found)
        if found:
            candidates[lanes.slot / lanes.count, count + popcount(who & ((1 << lanes.lane) - 1))] = k
        count += popcount(who)
    sync_lanes(lanes.lane, lanes.count)
    return count, resume


@wp.func
def mesh_in_reach(
    arena: ArenaGeometry, shape: CarShape, position: wp.vec3, rotation: wp.mat33, lanes: Lanes,
    candidates: wp.array2d(dtype=wp.int32),
) -> MeshReach:
    """Triangles of the mesh within reach. All lanes get the result."""
    reach = no_mesh_in_reach()
    query = reach_query(shape, position, rotation)
    cell = cell_of(position)
    start = arena.first[cell]
    end = arena.first[cell + 1]
    while start < end:
        count, resume = list_candidates(arena, start, end, query, lanes, candidates)
        start = resume
        for j in range(lanes.lane, count, lanes.count):
            reach = add_triangle(reach, arena, candidates[lanes.slot / lanes.count, j], shape, position, rotation)
        sync_lanes(lanes.lane, lanes.count)
    if lanes.count > 1:
        reach = merge_lanes(reach, lanes)
    return reach


@wp.func
def add_triangle(
    reach: MeshReach, arena: ArenaGeometry, k: int, shape: CarShape, position: wp.vec3, rotation: wp.mat33
) -> MeshReach:
    """What is within reach together with the arena's item k."""
    plane = plane_of(arena.planes, k)
    normal = wp.vec3(plane[0], plane[1], plane[2])
    seen = wp.transpose(rotation) * normal
    t = triangle_of(arena, k)
    middle = position + rotation * shape.middle
    half = shape.half + wp.vec3(shape.touch, shape.touch, shape.touch)
    if wp.abs(wp.dot(normal, middle) - plane[3]) <= projected_half_size(half, seen):
        if boxes_overlap(t, middle, aabb_half_size(shape.half, rotation)):
            reach.near = BODY_NEAR_MESH
    height = wp.dot(normal, position) - plane[3]
    for i in range(4):
        mount = wheel_mount(shape, i)
        before = height + wp.dot(seen, mount)
        after = before - seen[2] * ray_length(shape, i)
        if before * after < 0.0:
            fraction = before / (before - after)
            if fraction < reach.fraction[i]:
                end = wp.vec3(mount[0], mount[1], mount[2] - ray_length(shape, i) * fraction)
                if is_inside(t, position + rotation * end):
                    reach.near = wp.max(reach.near, WHEELS_ON_MESH)
                    reach.item[i] = k
                    reach.fraction[i] = fraction
    return reach


@wp.func
def merge_lanes(reach: MeshReach, lanes: Lanes) -> MeshReach:
    """What all lanes found. Of two triangles at the same place the first counts."""
    reach.near = -lane_min(lanes.lane, lanes.count, -reach.near)
    for i in range(4):
        place = wp.cast(reach.fraction[i], wp.int32)  # positive numbers are in the order of their bits
        nearest = lane_min(lanes.lane, lanes.count, place)
        reach.item[i] = lane_min(lanes.lane, lanes.count, wp.where(place == nearest, reach.item[i], NOT_FIRST))
        reach.fraction[i] = wp.cast(nearest, wp.float32)
    return reach
