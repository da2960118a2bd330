"""Finds the triangles of the arena that a car can reach, and those that its wheels stand on.

On a GPU, lanes share the triangles around a car (`lanes.py`).
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
from wavedash.rocket.sim.kernels.struct_io import loader, storer, stride_of
from wavedash.rocket.sim.mechanics.wheels import ray_length, wheel_mount

wp.set_module_options({"enable_backward": False})

WHEELS_ON_MESH = wp.constant(1)
BODY_NEAR_MESH = wp.constant(2)
NO_TRIANGLE, INT_MAX = wp.constant(-1), wp.constant(2**31 - 1)
MAX_CANDIDATES = wp.constant(48)
"""Triangles around a car that are listed at a time, to be divided among lanes"""
CAR_REACH = wp.constant(110.0)
"""uu: no part of a car is as far from its origin"""


@wp.struct
class MeshReach:
    """Triangles of the mesh that are within reach of a car."""

    near: wp.int32
    """0: no triangle is near, WHEELS_ON_MESH: a wheel stands on one, BODY_NEAR_MESH: the body may touch one"""
    item: wp.vec4i
    """Item of the arena under each wheel; NO_TRIANGLE: none"""
    fraction: wp.vec4
    """Fraction of the ray down from each wheel's mount at which it hits the triangle"""


load_mesh_reach, store_mesh_reach = loader(MeshReach), storer(MeshReach)
MESH_REACH_WORDS = wp.constant(stride_of(MeshReach))


@wp.func
def no_mesh_in_reach() -> MeshReach:
    """The result for a car that can reach no triangle."""
    reach = MeshReach()
    reach.item = wp.vec4i(NO_TRIANGLE, NO_TRIANGLE, NO_TRIANGLE, NO_TRIANGLE)
    reach.fraction = wp.vec4(1.0, 1.0, 1.0, 1.0)
    return reach


@wp.func
def boxes_overlap(t: Triangle, center: wp.vec3, extent: wp.vec3) -> bool:
    """Whether the axis-aligned boxes of a triangle and a body overlap. If not, Bullet tests no further."""
    for k in range(3):
        if wp.min(wp.min(t.a[k], t.b[k]), t.c[k]) > center[k] + extent[k]:
            return False
        if wp.max(wp.max(t.a[k], t.b[k]), t.c[k]) < center[k] - extent[k]:
            return False
    return True


@wp.func
def aabb_half_size(half: wp.vec3, rotation: wp.mat33) -> wp.vec3:
    """Half sizes of the axis-aligned box around a rotated box."""
    return wp.vec3(
        projected_half_size(half, wp.vec3(rotation[0, 0], rotation[0, 1], rotation[0, 2])),
        projected_half_size(half, wp.vec3(rotation[1, 0], rotation[1, 1], rotation[1, 2])),
        projected_half_size(half, wp.vec3(rotation[2, 0], rotation[2, 1], rotation[2, 2])),
    )


@wp.func
def is_mesh_near(arena: ArenaGeometry, shape: CarShape, position: wp.vec3, rotation: wp.mat33) -> bool:
    """Whether a triangle may be within reach of a car."""
    query = reach_query(shape, position, rotation)
    center = position + rotation * shape.bounds_center
    to_car = wp.transpose(rotation)
    cell = cell_of(position)
    end = arena.first[cell + 1]
    for first in range(arena.first[cell], end, 4):
        for i in range(4):  # four at a time, so that a GPU waits for four loads at once
            k = wp.min(first + i, end - 1)
            if may_overlap(arena.boxes, k, query):
                plane = plane_of(arena.planes, k)
                normal = wp.vec3(plane[0], plane[1], plane[2])
                if wp.abs(wp.dot(normal, center) - plane[3]) <= projected_half_size(shape.bounds_half, to_car * normal):
                    return True
    return False


@wp.func
def reach_query(shape: CarShape, position: wp.vec3, rotation: wp.mat33) -> wp.vec4i:
    """The query for the box around a car and all that its wheels can reach."""
    center = position + rotation * shape.bounds_center
    extent = aabb_half_size(shape.bounds_half, rotation)
    return aabb_query(center - extent, center + extent)


@wp.func
def list_candidates(
    arena: ArenaGeometry, start: int, end: int, query: wp.vec4i, lanes: Lanes, candidates: wp.array2d(dtype=wp.int32)
):
    """Lists, in their order, those of the arena's items start ... end - 1 whose boxes may overlap the query, until the list is
    full: (number of candidates, the item to resume at)."""
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
        votes = ballot(lanes.lane, lanes.count, found)
        if found:
            candidates[lanes.slot / lanes.count, count + popcount(votes & ((1 << lanes.lane) - 1))] = k
        count += popcount(votes)
    sync_lanes(lanes.lane, lanes.count)
    return count, resume


@wp.func
def mesh_in_reach(
    arena: ArenaGeometry, shape: CarShape, position: wp.vec3, rotation: wp.mat33, lanes: Lanes,
    candidates: wp.array2d(dtype=wp.int32),
) -> MeshReach:
    """The triangles within reach of a car. All lanes get the result."""
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
    """Adds the triangle of the arena's item k, if it is within reach."""
    plane = plane_of(arena.planes, k)
    normal = wp.vec3(plane[0], plane[1], plane[2])
    local_normal = wp.transpose(rotation) * normal
    t = triangle_of(arena, k)
    center = position + rotation * shape.center
    half = shape.half + wp.vec3(shape.contact_threshold, shape.contact_threshold, shape.contact_threshold)
    if wp.abs(wp.dot(normal, center) - plane[3]) <= projected_half_size(half, local_normal):
        if boxes_overlap(t, center, aabb_half_size(shape.half, rotation)):
            reach.near = BODY_NEAR_MESH
    height = wp.dot(normal, position) - plane[3]
    for i in range(4):
        mount = wheel_mount(shape, i)
        before = height + wp.dot(local_normal, mount)
        after = before - local_normal[2] * ray_length(shape, i)
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
    """Combines what all lanes found. Of two triangles at the same fraction the first counts."""
    reach.near = -lane_min(lanes.lane, lanes.count, -reach.near)
    for i in range(4):
        bits = wp.cast(reach.fraction[i], wp.int32)  # positive floats have the order of their bits
        nearest = lane_min(lanes.lane, lanes.count, bits)
        reach.item[i] = lane_min(lanes.lane, lanes.count, wp.where(bits == nearest, reach.item[i], INT_MAX))
        reach.fraction[i] = wp.cast(nearest, wp.float32)
    return reach
