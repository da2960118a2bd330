"""Which triangles of the arena are within reach of a car, and which of them its wheels stand on.

A team of threads shares the triangles around a car (`lanes.py`).
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.arena import (
    Arena,
    Triangle,
    cell_of,
    is_inside,
    may_overlap,
    plane_of,
    quarters,
    triangle_of,
)
from wavedash.rocket.sim.collision.box_triangle import shadow
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.kernels.lanes import Team, least, meet, ones, votes
from wavedash.rocket.sim.kernels.struct_io import loader, room_of, storer
from wavedash.rocket.sim.mechanics.wheels import reach_of, wheel_of

wp.set_module_options({"enable_backward": False})

WHEELS_NEAR = wp.constant(1)
BODY_NEAR = wp.constant(2)
NO_TRIANGLE, NOT_FIRST = wp.constant(-1), wp.constant(2**31 - 1)
ROOM_FOR_WALLS = 48
MOST_LISTED = wp.constant(ROOM_FOR_WALLS)
"""Triangles around a car that are listed before they are looked at, so that threads do that side by side"""
FARTHEST = wp.constant(110.0)
"""From a car's origin: no part of it reaches that far"""


@wp.struct
class Reach:
    """What of the walls is within reach of a car."""

    near: wp.int32
    """0: nothing, WHEELS_NEAR: a wheel stands on something, BODY_NEAR: its body may touch something"""
    item: wp.vec4i
    """Of the arena, under each wheel; NO_TRIANGLE: none"""
    fraction: wp.vec4
    """Of the ray down from each wheel's mount, where it meets the triangle"""


load_reach, store_reach = loader(Reach), storer(Reach)
REACH_WORDS = wp.constant(room_of(Reach))


@wp.func
def out_of_reach() -> Reach:
    """Of all walls."""
    reach = Reach()
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
def extent_of(half: wp.vec3, rotation: wp.mat33) -> wp.vec3:
    """Half sizes along the world's axes of a box that is turned."""
    return wp.vec3(
        shadow(half, wp.vec3(rotation[0, 0], rotation[0, 1], rotation[0, 2])),
        shadow(half, wp.vec3(rotation[1, 0], rotation[1, 1], rotation[1, 2])),
        shadow(half, wp.vec3(rotation[2, 0], rotation[2, 1], rotation[2, 2])),
    )


@wp.func
def is_near_wall(arena: Arena, shape: CarShape, position: wp.vec3, rotation: wp.mat33) -> bool:
    """Whether a triangle may be within reach of a car."""
    query = box_around(shape, position, rotation)
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
                if wp.abs(wp.dot(normal, middle) - plane[3]) <= shadow(shape.around_half, to_car * normal):
                    return True
    return False


@wp.func
def box_around(shape: CarShape, position: wp.vec3, rotation: wp.mat33) -> wp.vec4i:
    """A car with all that its wheels can reach, as a query."""
    middle = position + rotation * shape.around_middle
    extent = extent_of(shape.around_half, rotation)
    return quarters(middle - extent, middle + extent)


@wp.func
def list_walls(arena: Arena, start: int, end: int, query: wp.vec4i, team: Team, listed: wp.array2d(dtype=wp.int32)):
    """Of the arena's items start ... end - 1, writes those whose boxes may overlap the query, in their order: (how many there
    are, the item to go on with when they are done with)."""
    many = int(0)
    goes_on = int(end)
    for first in range(start, end, team.lanes):
        if many + team.lanes > MOST_LISTED:
            goes_on = first
            break
        k = first + team.lane
        found = bool(False)
        if k < end:
            found = may_overlap(arena.boxes, k, query)
        who = votes(team.lane, team.lanes, found)
        if found:
            listed[team.place / team.lanes, many + ones(who & ((1 << team.lane) - 1))] = k
        many += ones(who)
    meet(team.lane, team.lanes)
    return many, goes_on


@wp.func
def walls_near(
    arena: Arena, shape: CarShape, position: wp.vec3, rotation: wp.mat33, team: Team, listed: wp.array2d(dtype=wp.int32)
) -> Reach:
    """What of the walls is within reach. All of the team know it."""
    reach = out_of_reach()
    query = box_around(shape, position, rotation)
    cell = cell_of(position)
    start = arena.first[cell]
    end = arena.first[cell + 1]
    while start < end:
        many, goes_on = list_walls(arena, start, end, query, team, listed)
        start = goes_on
        for j in range(team.lane, many, team.lanes):
            reach = with_wall(reach, arena, listed[team.place / team.lanes, j], shape, position, rotation)
        meet(team.lane, team.lanes)
    if team.lanes > 1:
        reach = together(reach, team)
    return reach


@wp.func
def with_wall(reach: Reach, arena: Arena, k: int, shape: CarShape, position: wp.vec3, rotation: wp.mat33) -> Reach:
    """And the arena's item k."""
    plane = plane_of(arena.planes, k)
    normal = wp.vec3(plane[0], plane[1], plane[2])
    seen = wp.transpose(rotation) * normal
    t = triangle_of(arena, k)
    middle = position + rotation * shape.middle
    half = shape.half + wp.vec3(shape.touch, shape.touch, shape.touch)
    if wp.abs(wp.dot(normal, middle) - plane[3]) <= shadow(half, seen):
        if boxes_overlap(t, middle, extent_of(shape.half, rotation)):
            reach.near = BODY_NEAR
    height = wp.dot(normal, position) - plane[3]
    for i in range(4):
        mount = wheel_of(shape, i)
        before = height + wp.dot(seen, mount)
        after = before - seen[2] * reach_of(shape, i)
        if before * after < 0.0:
            fraction = before / (before - after)
            if fraction < reach.fraction[i]:
                end = wp.vec3(mount[0], mount[1], mount[2] - reach_of(shape, i) * fraction)
                if is_inside(t, position + rotation * end):
                    reach.near = wp.max(reach.near, WHEELS_NEAR)
                    reach.item[i] = k
                    reach.fraction[i] = fraction
    return reach


@wp.func
def together(reach: Reach, team: Team) -> Reach:
    """What all threads of a team found. Of two triangles at the same place the first counts."""
    reach.near = -least(team.lane, team.lanes, -reach.near)
    for i in range(4):
        place = wp.cast(reach.fraction[i], wp.int32)  # positive numbers are in the order of their bits
        nearest = least(team.lane, team.lanes, place)
        reach.item[i] = least(team.lane, team.lanes, wp.where(place == nearest, reach.item[i], NOT_FIRST))
        reach.fraction[i] = wp.cast(nearest, wp.float32)
    return reach
