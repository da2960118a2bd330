"""Where the body of a car touches the field.

A car touches a plane in one point, the corner that is deepest below it, and every triangle in one point. Nothing is remembered
from tick to tick: a car that lies on its roof stands on one corner in each tick, on another in the next.

For triangles the box has round edges, for planes it has sharp ones.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.arena import CEILING, WALL_X, Arena, Triangle, cell_of, quarters, triangle_of
from wavedash.rocket.sim.collision.box_triangle import box_meets_triangle, corner, shadow
from wavedash.rocket.sim.collision.contacts import ARENA, Contact, Touch
from wavedash.rocket.sim.collision.edges import normal_near_edges
from wavedash.rocket.sim.collision.manifold import with_point
from wavedash.rocket.sim.collision.mesh_reach import boxes_overlap, extent_of, list_walls
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.kernels.lanes import Team, meet, votes

wp.set_module_options({"enable_backward": False})

FRICTION = wp.constant(0.3)
RESTITUTION = wp.constant(0.3)
MOST_CAR_CONTACTS = 10
"""Two planes and two meshes"""
ROOM = wp.constant(MOST_CAR_CONTACTS)


@wp.struct
class CarBody:
    """The box of a car where it is now."""

    rotation: wp.mat33
    middle: wp.vec3
    arm: wp.vec3
    """From the car's origin to the middle"""
    half: wp.vec3
    """Sizes of the box"""
    edge: wp.float32
    """Radius of its edges"""
    extent: wp.vec3
    """Half sizes along the world's axes"""
    touch: wp.float32
    """Distance below which it touches"""


@wp.struct
class CarTouch:
    """What a car knows of its contacts with the field."""

    touches: wp.bool
    normal: wp.vec3
    """Of the last one, before the rule for edges"""


@wp.func
def car_body(shape: CarShape, position: wp.vec3, rotation: wp.mat33) -> CarBody:
    """Of a car there."""
    body = CarBody()
    body.rotation = rotation
    body.arm = rotation * shape.middle
    body.middle = position + body.arm
    body.half = shape.half
    body.edge = shape.edge
    body.extent = extent_of(shape.half, rotation)
    body.touch = shape.touch
    return body


@wp.func
def car_contact(arm: wp.vec3, normal: wp.vec3, distance: float) -> Contact:
    """Of a car with the field. The car is body 0 until someone puts it among others."""
    contact = Contact()
    contact.b = ARENA
    contact.arm_a = arm
    contact.normal = normal
    contact.distance = distance
    contact.friction = FRICTION
    contact.restitution = RESTITUTION
    return contact


@wp.func
def touch_plane(
    body: CarBody, normal: wp.vec3, height: float, contacts: wp.array2d(dtype=Contact), row: int, count: int
) -> int:
    """With a plane that the lowest point of the car is `height` above: at the corner that is lowest."""
    lowest = corner(body.half, -(wp.transpose(body.rotation) * normal))
    contacts[row, count] = car_contact(body.arm + body.rotation * lowest, normal, height)
    return count + 1


@wp.func
def touch_planes(body: CarBody, contacts: wp.array2d(dtype=Contact), row: int, count: int):
    """Floor, ceiling and side walls: (new count, CarTouch)."""
    low = body.middle - body.extent
    high = body.middle + body.extent
    before = count
    touch = CarTouch()
    if low[2] < body.touch:
        touch.normal = wp.vec3(0.0, 0.0, 1.0)
        count = touch_plane(body, touch.normal, low[2], contacts, row, count)
    if CEILING - high[2] < body.touch:
        touch.normal = wp.vec3(0.0, 0.0, -1.0)
        count = touch_plane(body, touch.normal, CEILING - high[2], contacts, row, count)
    if WALL_X + low[0] < body.touch:
        touch.normal = wp.vec3(1.0, 0.0, 0.0)
        count = touch_plane(body, touch.normal, WALL_X + low[0], contacts, row, count)
    if WALL_X - high[0] < body.touch:
        touch.normal = wp.vec3(-1.0, 0.0, 0.0)
        count = touch_plane(body, touch.normal, WALL_X - high[0], contacts, row, count)
    touch.touches = count > before
    return count, touch


@wp.func
def seen_from(t: Triangle, body: CarBody) -> Triangle:
    """A triangle in the frame of a car's box."""
    to_car = wp.transpose(body.rotation)
    seen = Triangle()
    seen.a = to_car * (t.a - body.middle)
    seen.b = to_car * (t.b - body.middle)
    seen.c = to_car * (t.c - body.middle)
    seen.normal = to_car * t.normal
    seen.offset = t.offset - wp.dot(t.normal, body.middle)
    return seen


@wp.func
def is_near(t: Triangle, body: CarBody) -> bool:
    """Whether a car's box is near a triangle's plane, and the boxes around them overlap."""
    half = body.half + wp.vec3(body.touch, body.touch, body.touch)
    if wp.abs(wp.dot(t.normal, body.middle) - t.offset) <= shadow(half, wp.transpose(body.rotation) * t.normal):
        return boxes_overlap(t, body.middle, body.extent)
    return False


@wp.func
def touch_triangle(body: CarBody, t: Triangle) -> Touch:
    """Where the car touches a triangle."""
    touch = Touch()
    if not is_near(t, body):
        return touch
    core = body.half - wp.vec3(body.edge, body.edge, body.edge)
    meeting = box_meets_triangle(core, seen_from(t, body), body.edge + body.touch)
    distance = meeting.distance - body.edge
    if distance <= body.touch:
        touch.touches = True
        touch.mesh = t.mesh
        touch.away = body.rotation * meeting.normal
        on_core = body.rotation * meeting.point
        on_triangle = body.middle + on_core - touch.away * meeting.distance
        arm = body.arm + on_core - touch.away * body.edge
        touch.contact = car_contact(arm, normal_near_edges(t, on_triangle, touch.away), distance)
    return touch


@wp.func
def touch_triangles(
    body: CarBody,
    arena: Arena,
    cell: int,
    contacts: wp.array2d(dtype=Contact),
    row: int,
    count: int,
    room: int,
    known: CarTouch,
    team: Team,
    listed: wp.array2d(dtype=wp.int32),
    touches: wp.array(dtype=Touch),
):
    """All triangles near the car: (new count, CarTouch). `known` is what it knows of planes, whose normals come first. The team
    tests triangles side by side; lane 0 takes the contacts in their order, and is the one that knows them."""
    on_plane = known.touches
    first = count
    mesh = int(-1)
    query = quarters(body.middle - body.extent, body.middle + body.extent)
    start = arena.first[cell]
    end = arena.first[cell + 1]
    while start < end:
        many, goes_on = list_walls(arena, start, end, query, team, listed)
        start = goes_on
        for done in range(0, many, team.lanes):
            mine = wp.min(done + team.lane, many - 1)
            touch = touch_triangle(body, triangle_of(arena, listed[team.place / team.lanes, mine]))
            found = touch.touches and mine == done + team.lane
            who = votes(team.lane, team.lanes, found)
            if found:
                touches[team.place + team.lane] = touch
            if who != 0:
                meet(team.lane, team.lanes)
                if team.lane == 0:
                    known.touches = True
                    for i in range(team.lanes):
                        if (who >> i) & 1 == 1:
                            touch = touches[team.place + i]
                            if touch.mesh != mesh:
                                mesh = touch.mesh
                                first = count
                            if not on_plane:
                                known.normal = touch.away
                            count = with_point(contacts, row, first, count, room, touch.contact)
                meet(team.lane, team.lanes)
    return count, known


@wp.func
def car_touches_arena(
    arena: Arena,
    shape: CarShape,
    position: wp.vec3,
    rotation: wp.mat33,
    contacts: wp.array2d(dtype=Contact),
    row: int,
    count: int,
    team: Team,
    listed: wp.array2d(dtype=wp.int32),
    touches: wp.array(dtype=Touch),
):
    """Writes the car's contacts behind the `count` that a row of the list has: (the new count, what the car knows of them), for
    lane 0 of the team. The last two arguments are room for its work.

    Planes come first: Bullet solves them before meshes, and where a car touches both that shows.
    """
    body = car_body(shape, position, rotation)
    room = count + ROOM
    known = CarTouch()
    if team.lane == 0:
        count, known = touch_planes(body, contacts, row, count)
    cell = cell_of(position)
    if arena.first[cell] < arena.first[cell + 1]:
        count, known = touch_triangles(body, arena, cell, contacts, row, count, room, known, team, listed, touches)
    return count, known


@wp.func
def touch_floor(shape: CarShape, position: wp.vec3, rotation: wp.mat33):
    """Whether a car that is near nothing but the floor touches it (1 or 0), and where."""
    vertical = wp.vec3(rotation[2, 0], rotation[2, 1], rotation[2, 2])  # the world's up in the car's own frame
    height = position[2] + wp.dot(vertical, shape.middle) - shadow(shape.half, vertical)
    lowest = shape.middle + corner(shape.half, -vertical)
    contact = car_contact(rotation * lowest, wp.vec3(0.0, 0.0, 1.0), height)
    return wp.where(height < shape.touch, 1, 0), contact


@wp.func
def is_near_plane(shape: CarShape, position: wp.vec3, rotation: wp.mat33) -> bool:
    """Whether a car touches floor, ceiling or a side wall."""
    body = car_body(shape, position, rotation)
    low = body.middle - body.extent
    high = body.middle + body.extent
    floor = wp.min(low[2], CEILING - high[2])
    return wp.min(floor, wp.min(WALL_X + low[0], WALL_X - high[0])) < body.touch
