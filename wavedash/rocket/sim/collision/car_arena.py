"""Where the body of a car touches the field.

A car touches a plane in one point, the corner that is deepest below it, and every triangle in one point. Nothing is remembered
from tick to tick: a car that lies on its roof stands on one corner in each tick, on another in the next.

For triangles the box has round edges, for planes it has sharp ones.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.arena import ArenaGeometry, Triangle, aabb_query, cell_of, triangle_of
from wavedash.rocket.sim.collision.box_triangle import closest_box_triangle, projected_half_size, support_corner
from wavedash.rocket.sim.collision.contacts import ARENA, Contact, TriangleTouch
from wavedash.rocket.sim.collision.edges import normal_near_edges
from wavedash.rocket.sim.collision.manifold import add_to_manifold
from wavedash.rocket.sim.collision.mesh_reach import aabb_half_size, boxes_overlap, list_candidates
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.constants import ARENA_CEILING_Z, ARENA_WALL_X, CAR_ARENA_FRICTION, CAR_ARENA_RESTITUTION
from wavedash.rocket.sim.kernels.lanes import Lanes, ballot, sync_lanes

wp.set_module_options({"enable_backward": False})

MAX_CAR_CONTACTS = 10
"""Two planes and two meshes"""
ROOM = wp.constant(MAX_CAR_CONTACTS)


@wp.struct
class CarBox:
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
class ArenaTouch:
    """What a car knows of its contacts with the field."""

    touches: wp.bool
    normal: wp.vec3
    """Normal of the last contact, before the rule for edges"""


@wp.func
def car_box(shape: CarShape, position: wp.vec3, rotation: wp.mat33) -> CarBox:
    """The box of a car at a place."""
    box = CarBox()
    box.rotation = rotation
    box.arm = rotation * shape.middle
    box.middle = position + box.arm
    box.half = shape.half
    box.edge = shape.edge
    box.extent = aabb_half_size(shape.half, rotation)
    box.touch = shape.touch
    return box


@wp.func
def car_contact(arm: wp.vec3, normal: wp.vec3, distance: float) -> Contact:
    """A contact of a car with the field. The car is body 0 until it is put among others."""
    contact = Contact()
    contact.b = ARENA
    contact.arm_a = arm
    contact.normal = normal
    contact.distance = distance
    contact.friction = CAR_ARENA_FRICTION
    contact.restitution = CAR_ARENA_RESTITUTION
    return contact


@wp.func
def add_plane_contact(
    box: CarBox, normal: wp.vec3, height: float, contacts: wp.array2d(dtype=Contact), e: int, count: int
) -> int:
    """Adds a contact with a plane that the lowest corner of the car is `height` above."""
    lowest = support_corner(box.half, -(wp.transpose(box.rotation) * normal))
    contacts[e, count] = car_contact(box.arm + box.rotation * lowest, normal, height)
    return count + 1


@wp.func
def add_plane_contacts(box: CarBox, contacts: wp.array2d(dtype=Contact), e: int, count: int):
    """Adds contacts with floor, ceiling and side walls: (new count, ArenaTouch)."""
    low = box.middle - box.extent
    high = box.middle + box.extent
    before = count
    touch = ArenaTouch()
    if low[2] < box.touch:
        touch.normal = wp.vec3(0.0, 0.0, 1.0)
        count = add_plane_contact(box, touch.normal, low[2], contacts, e, count)
    if ARENA_CEILING_Z - high[2] < box.touch:
        touch.normal = wp.vec3(0.0, 0.0, -1.0)
        count = add_plane_contact(box, touch.normal, ARENA_CEILING_Z - high[2], contacts, e, count)
    if ARENA_WALL_X + low[0] < box.touch:
        touch.normal = wp.vec3(1.0, 0.0, 0.0)
        count = add_plane_contact(box, touch.normal, ARENA_WALL_X + low[0], contacts, e, count)
    if ARENA_WALL_X - high[0] < box.touch:
        touch.normal = wp.vec3(-1.0, 0.0, 0.0)
        count = add_plane_contact(box, touch.normal, ARENA_WALL_X - high[0], contacts, e, count)
    touch.touches = count > before
    return count, touch


@wp.func
def in_car_frame(t: Triangle, box: CarBox) -> Triangle:
    """A triangle in the frame of a car's box."""
    to_car = wp.transpose(box.rotation)
    seen = Triangle()
    seen.a = to_car * (t.a - box.middle)
    seen.b = to_car * (t.b - box.middle)
    seen.c = to_car * (t.c - box.middle)
    seen.normal = to_car * t.normal
    seen.offset = t.offset - wp.dot(t.normal, box.middle)
    return seen


@wp.func
def is_near(t: Triangle, box: CarBox) -> bool:
    """Whether a car's box is near a triangle's plane, and the boxes around them overlap."""
    half = box.half + wp.vec3(box.touch, box.touch, box.touch)
    if wp.abs(wp.dot(t.normal, box.middle) - t.offset) <= projected_half_size(half, wp.transpose(box.rotation) * t.normal):
        return boxes_overlap(t, box.middle, box.extent)
    return False


@wp.func
def car_triangle_touch(box: CarBox, t: Triangle) -> TriangleTouch:
    """Where the car touches a triangle."""
    touch = TriangleTouch()
    if not is_near(t, box):
        return touch
    core = box.half - wp.vec3(box.edge, box.edge, box.edge)
    closest = closest_box_triangle(core, in_car_frame(t, box), box.edge + box.touch)
    distance = closest.distance - box.edge
    if distance <= box.touch:
        touch.touches = True
        touch.mesh = t.mesh
        touch.away = box.rotation * closest.normal
        on_core = box.rotation * closest.point
        on_triangle = box.middle + on_core - touch.away * closest.distance
        arm = box.arm + on_core - touch.away * box.edge
        touch.contact = car_contact(arm, normal_near_edges(t, on_triangle, touch.away), distance)
    return touch


@wp.func
def add_triangle_contacts(
    box: CarBox,
    arena: ArenaGeometry,
    cell: int,
    contacts: wp.array2d(dtype=Contact),
    e: int,
    count: int,
    room: int,
    known: ArenaTouch,
    lanes: Lanes,
    candidates: wp.array2d(dtype=wp.int32),
    lane_touches: wp.array(dtype=TriangleTouch),
):
    """Adds contacts with the triangles near the car: (new count, ArenaTouch). `known` is what is known of planes, whose normals
    come first. Lanes test triangles side by side; lane 0 takes the contacts in their order, and is the one that knows them."""
    on_plane = known.touches
    first = count
    mesh = int(-1)
    query = aabb_query(box.middle - box.extent, box.middle + box.extent)
    start = arena.first[cell]
    end = arena.first[cell + 1]
    while start < end:
        listed, resume = list_candidates(arena, start, end, query, lanes, candidates)
        start = resume
        for done in range(0, listed, lanes.count):
            mine = wp.min(done + lanes.lane, listed - 1)
            touch = car_triangle_touch(box, triangle_of(arena, candidates[lanes.slot / lanes.count, mine]))
            found = touch.touches and mine == done + lanes.lane
            who = ballot(lanes.lane, lanes.count, found)
            if found:
                lane_touches[lanes.slot + lanes.lane] = touch
            if who != 0:
                sync_lanes(lanes.lane, lanes.count)
                if lanes.lane == 0:
                    known.touches = True
                    for i in range(lanes.count):
                        if (who >> i) & 1 == 1:
                            touch = lane_touches[lanes.slot + i]
                            if touch.mesh != mesh:
                                mesh = touch.mesh
                                first = count
                            if not on_plane:
                                known.normal = touch.away
                            count = add_to_manifold(contacts, e, first, count, room, touch.contact)
                sync_lanes(lanes.lane, lanes.count)
    return count, known


@wp.func
def add_car_contacts(
    arena: ArenaGeometry,
    shape: CarShape,
    position: wp.vec3,
    rotation: wp.mat33,
    contacts: wp.array2d(dtype=Contact),
    e: int,
    count: int,
    lanes: Lanes,
    candidates: wp.array2d(dtype=wp.int32),
    lane_touches: wp.array(dtype=TriangleTouch),
):
    """Writes the car's contacts behind the `count` that a row of the list has: (the new count, what the car knows of them), for
    lane 0. The last two arguments are room for the work of the lanes.

    Planes come first: Bullet solves them before meshes, and where a car touches both that shows.
    """
    box = car_box(shape, position, rotation)
    room = count + ROOM
    known = ArenaTouch()
    if lanes.lane == 0:
        count, known = add_plane_contacts(box, contacts, e, count)
    cell = cell_of(position)
    if arena.first[cell] < arena.first[cell + 1]:
        count, known = add_triangle_contacts(box, arena, cell, contacts, e, count, room, known, lanes, candidates, lane_touches)
    return count, known


@wp.func
def find_floor_contact(shape: CarShape, position: wp.vec3, rotation: wp.mat33):
    """Whether a car that is near nothing but the floor touches it (1 or 0), and where."""
    vertical = wp.vec3(rotation[2, 0], rotation[2, 1], rotation[2, 2])  # the world's up in the car's own frame
    height = position[2] + wp.dot(vertical, shape.middle) - projected_half_size(shape.half, vertical)
    lowest = shape.middle + support_corner(shape.half, -vertical)
    contact = car_contact(rotation * lowest, wp.vec3(0.0, 0.0, 1.0), height)
    return wp.where(height < shape.touch, 1, 0), contact


@wp.func
def touches_plane(shape: CarShape, position: wp.vec3, rotation: wp.mat33) -> bool:
    """Whether a car touches floor, ceiling or a side wall."""
    box = car_box(shape, position, rotation)
    low = box.middle - box.extent
    high = box.middle + box.extent
    floor = wp.min(low[2], ARENA_CEILING_Z - high[2])
    return wp.min(floor, wp.min(ARENA_WALL_X + low[0], ARENA_WALL_X - high[0])) < box.touch
