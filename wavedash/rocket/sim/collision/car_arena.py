"""Contacts of a car's body with the field.

A car touches a plane in one point, its deepest corner, and every triangle in one point. Nothing is remembered from tick to
tick: a car that lies on its roof stands on one corner in each tick, on another in the next.

The box has round edges towards triangles and sharp ones towards planes.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.arena import ArenaGeometry, Triangle, aabb_query, cell_of, triangle_of
from wavedash.rocket.sim.collision.box_triangle import closest_box_triangle, projected_half_size, support_corner
from wavedash.rocket.sim.collision.contacts import Contact, TriangleTouch, arena_contact
from wavedash.rocket.sim.collision.edges import normal_near_edges
from wavedash.rocket.sim.collision.manifold import add_touch
from wavedash.rocket.sim.collision.mesh_reach import aabb_half_size, boxes_overlap, list_candidates
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.constants import ARENA_CEILING_Z, ARENA_WALL_X, CAR_ARENA_FRICTION, CAR_ARENA_RESTITUTION
from wavedash.rocket.sim.kernels.lanes import Lanes, ballot, sync_lanes

wp.set_module_options({"enable_backward": False})

MAX_CAR_CONTACTS = wp.constant(10)
"""A car in a corner touches two planes and two meshes"""


@wp.struct
class CarBox:
    """The box of a car where it is now."""

    rotation: wp.mat33
    center: wp.vec3
    arm: wp.vec3
    """Vector from the car's origin to the center"""
    half: wp.vec3
    """Half sizes of the box"""
    margin: wp.float32
    """Radius of its edges"""
    extent: wp.vec3
    """Half sizes of its axis-aligned box"""
    contact_threshold: wp.float32
    """Distance below which it touches"""


@wp.struct
class ArenaTouch:
    """Whether a car touches the field, and the normal that its state keeps."""

    touches: wp.bool
    normal: wp.vec3
    """Normal of the last contact, before the rule for edges"""


@wp.func
def car_box(shape: CarShape, position: wp.vec3, rotation: wp.mat33) -> CarBox:
    """The box of a car with this position and rotation."""
    box = CarBox()
    box.rotation = rotation
    box.arm = rotation * shape.center
    box.center = position + box.arm
    box.half = shape.half
    box.margin = shape.margin
    box.extent = aabb_half_size(shape.half, rotation)
    box.contact_threshold = shape.contact_threshold
    return box


@wp.func
def car_contact(arm: wp.vec3, normal: wp.vec3, distance: float) -> Contact:
    """A contact of a car with the field. The car has number 0 until it is solved together with other bodies."""
    contact = arena_contact(arm, normal, distance)
    contact.friction = CAR_ARENA_FRICTION
    contact.restitution = CAR_ARENA_RESTITUTION
    return contact


@wp.func
def add_plane_contact(
    box: CarBox, normal: wp.vec3, height: float, contacts: wp.array2d(dtype=Contact), e: int, count: int
) -> int:
    """Adds a contact with a plane, `height` below the lowest corner of the car. Returns the new count."""
    lowest = support_corner(box.half, -(wp.transpose(box.rotation) * normal))
    contacts[e, count] = car_contact(box.arm + box.rotation * lowest, normal, height)
    return count + 1


@wp.func
def add_plane_contacts(box: CarBox, contacts: wp.array2d(dtype=Contact), e: int, count: int):
    """Adds contacts with floor, ceiling and side walls: (new count, ArenaTouch)."""
    low = box.center - box.extent
    high = box.center + box.extent
    before = count
    touch = ArenaTouch()
    if low[2] < box.contact_threshold:
        touch.normal = wp.vec3(0.0, 0.0, 1.0)
        count = add_plane_contact(box, touch.normal, low[2], contacts, e, count)
    if ARENA_CEILING_Z - high[2] < box.contact_threshold:
        touch.normal = wp.vec3(0.0, 0.0, -1.0)
        count = add_plane_contact(box, touch.normal, ARENA_CEILING_Z - high[2], contacts, e, count)
    if ARENA_WALL_X + low[0] < box.contact_threshold:
        touch.normal = wp.vec3(1.0, 0.0, 0.0)
        count = add_plane_contact(box, touch.normal, ARENA_WALL_X + low[0], contacts, e, count)
    if ARENA_WALL_X - high[0] < box.contact_threshold:
        touch.normal = wp.vec3(-1.0, 0.0, 0.0)
        count = add_plane_contact(box, touch.normal, ARENA_WALL_X - high[0], contacts, e, count)
    touch.touches = count > before
    return count, touch


@wp.func
def in_car_frame(t: Triangle, box: CarBox) -> Triangle:
    """A triangle in the frame of a car's box."""
    to_car = wp.transpose(box.rotation)
    local = Triangle()
    local.a = to_car * (t.a - box.center)
    local.b = to_car * (t.b - box.center)
    local.c = to_car * (t.c - box.center)
    local.normal = to_car * t.normal
    local.offset = t.offset - wp.dot(t.normal, box.center)
    return local


@wp.func
def is_near(t: Triangle, box: CarBox) -> bool:
    """Whether a car's box is near a triangle's plane, and their axis-aligned boxes overlap."""
    half = box.half + wp.vec3(box.contact_threshold, box.contact_threshold, box.contact_threshold)
    if wp.abs(wp.dot(t.normal, box.center) - t.offset) <= projected_half_size(half, wp.transpose(box.rotation) * t.normal):
        return boxes_overlap(t, box.center, box.extent)
    return False


@wp.func
def car_triangle_touch(box: CarBox, t: Triangle) -> TriangleTouch:
    """The contact of a car with a triangle, if they touch."""
    touch = TriangleTouch()
    if not is_near(t, box):
        return touch
    core = box.half - wp.vec3(box.margin, box.margin, box.margin)
    closest = closest_box_triangle(core, in_car_frame(t, box), box.margin + box.contact_threshold)
    distance = closest.distance - box.margin
    if distance <= box.contact_threshold:
        touch.touches = True
        touch.mesh = t.mesh
        touch.away = box.rotation * closest.normal
        on_core = box.rotation * closest.point
        on_triangle = box.center + on_core - touch.away * closest.distance
        arm = box.arm + on_core - touch.away * box.margin
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
    limit: int,
    known: ArenaTouch,
    lanes: Lanes,
    candidates: wp.array2d(dtype=wp.int32),
    lane_touches: wp.array(dtype=TriangleTouch),
):
    """Adds contacts with the triangles near the car: (new count, ArenaTouch), on lane 0. `known` is the ArenaTouch of planes,
    whose normal has priority. Each lane tests a triangle at a time; lane 0 adds the contacts in the order of the triangles."""
    on_plane = known.touches
    first = count
    mesh = int(-1)
    query = aabb_query(box.center - box.extent, box.center + box.extent)
    start = arena.first[cell]
    end = arena.first[cell + 1]
    while start < end:
        listed, resume = list_candidates(arena, start, end, query, lanes, candidates)
        start = resume
        for done in range(0, listed, lanes.count):
            mine = wp.min(done + lanes.lane, listed - 1)
            touch = car_triangle_touch(box, triangle_of(arena, candidates[lanes.slot / lanes.count, mine]))
            found = touch.touches and mine == done + lanes.lane
            votes = ballot(lanes.lane, lanes.count, found)
            if found:
                lane_touches[lanes.slot + lanes.lane] = touch
            if votes != 0:
                sync_lanes(lanes.lane, lanes.count)
                if lanes.lane == 0:
                    known.touches = True
                    for k in range(lanes.count):
                        if (votes >> k) & 1 == 1:
                            touch = lane_touches[lanes.slot + k]
                            if not on_plane:
                                known.normal = touch.away
                            mesh, first, count = add_touch(contacts, e, mesh, first, count, limit, touch)
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
    """Appends the car's contacts to the first `count` of row e: (new count, ArenaTouch), on lane 0. The last two arguments are
    work memory of the lanes.

    Planes come first, because Bullet solves them before meshes, which matters where a car touches both.
    """
    box = car_box(shape, position, rotation)
    limit = count + MAX_CAR_CONTACTS
    known = ArenaTouch()
    if lanes.lane == 0:
        count, known = add_plane_contacts(box, contacts, e, count)
    cell = cell_of(position)
    if arena.first[cell] < arena.first[cell + 1]:
        count, known = add_triangle_contacts(box, arena, cell, contacts, e, count, limit, known, lanes, candidates,
                                             lane_touches)
    return count, known


@wp.func
def find_floor_contact(shape: CarShape, position: wp.vec3, rotation: wp.mat33):
    """Whether a car that is near nothing but the floor touches it (1 or 0), and the contact."""
    vertical = wp.vec3(rotation[2, 0], rotation[2, 1], rotation[2, 2])  # the z axis in the car's frame
    height = position[2] + wp.dot(vertical, shape.center) - projected_half_size(shape.half, vertical)
    lowest = shape.center + support_corner(shape.half, -vertical)
    contact = car_contact(rotation * lowest, wp.vec3(0.0, 0.0, 1.0), height)
    return wp.where(height < shape.contact_threshold, 1, 0), contact


@wp.func
def touches_plane(shape: CarShape, position: wp.vec3, rotation: wp.mat33) -> bool:
    """Whether a car touches floor, ceiling or a side wall."""
    box = car_box(shape, position, rotation)
    low = box.center - box.extent
    high = box.center + box.extent
    floor = wp.min(low[2], ARENA_CEILING_Z - high[2])
    return wp.min(floor, wp.min(ARENA_WALL_X + low[0], ARENA_WALL_X - high[0])) < box.contact_threshold
