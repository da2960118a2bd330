"""Contacts of the ball with the field.

RocketSim bounces the ball off the mean of all its contacts' normals, so their number matters, not only their directions. The
contacts themselves only push the ball out of what it overlaps. None is kept from one tick to the next.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import BALL_RADIUS
from wavedash.rocket.sim.collision.arena import (
    ArenaGeometry,
    Triangle,
    cell_of,
    is_over_open_floor,
    plane_of,
    triangle_of,
)
from wavedash.rocket.sim.collision.contacts import BALL, Contact, TriangleTouch, arena_contact
from wavedash.rocket.sim.collision.edges import normal_near_edges
from wavedash.rocket.sim.collision.manifold import add_touch
from wavedash.rocket.sim.constants import ARENA_CEILING_Z, ARENA_WALL_X, BALL_CONTACT_DISTANCE
from wavedash.rocket.sim.kernels.lanes import Lanes, ballot, sync_lanes

wp.set_module_options({"enable_backward": False})

MAX_BALL_CONTACTS = wp.constant(12)
"""A ball in a corner touches two planes and two meshes"""
ON_PLANE, ON_MESH = wp.constant(1), wp.constant(2)
"""What the ball touches: one plane, or more than that"""


@wp.struct
class BallTouch:
    """The sum of all contacts of the ball with the field."""

    contacts: wp.int32
    """Number of contacts"""
    normals: wp.vec3
    """Sum of their normals"""
    arms: wp.float32
    """Sum of the distances from the ball's center to its contacts"""


@wp.func
def ball_contact(arm: wp.vec3, normal: wp.vec3, distance: float) -> Contact:
    """A contact that pushes the ball out of the arena, and does not bounce it."""
    contact = arena_contact(arm, normal, distance)
    contact.a = BALL
    contact.push_only = True
    return contact


@wp.func
def nearest_on_triangle(t: Triangle, p: wp.vec3) -> wp.vec3:
    """The point of a triangle that is nearest to p (Ericson, Real-Time Collision Detection, 5.1.5)."""
    ab = t.b - t.a
    ac = t.c - t.a
    d1 = wp.dot(ab, p - t.a)
    d2 = wp.dot(ac, p - t.a)
    if d1 <= 0.0 and d2 <= 0.0:
        return t.a
    d3 = wp.dot(ab, p - t.b)
    d4 = wp.dot(ac, p - t.b)
    if d3 >= 0.0 and d4 <= d3:
        return t.b
    d5 = wp.dot(ab, p - t.c)
    d6 = wp.dot(ac, p - t.c)
    if d6 >= 0.0 and d5 <= d6:
        return t.c
    beside_ab = d1 * d4 - d3 * d2
    if beside_ab <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        return t.a + ab * (d1 / (d1 - d3))
    beside_ac = d5 * d2 - d1 * d6
    if beside_ac <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        return t.a + ac * (d2 / (d2 - d6))
    beside_bc = d3 * d6 - d5 * d4
    if beside_bc <= 0.0 and d4 >= d3 and d5 >= d6:
        return t.b + (t.c - t.b) * ((d4 - d3) / ((d4 - d3) + (d5 - d6)))
    return p - t.normal * (wp.dot(t.normal, p) - t.offset)


@wp.func
def add_plane_contact(contacts: wp.array2d(dtype=Contact), e: int, count: int, normal: wp.vec3, height: float) -> int:
    """Adds a contact with a plane, `height` below the ball's center, if they touch. Returns the new count."""
    if height - BALL_RADIUS < BALL_CONTACT_DISTANCE:
        contacts[e, count] = ball_contact(normal * (-BALL_RADIUS), normal, height - BALL_RADIUS)
        return count + 1
    return count


@wp.func
def ball_triangle_touch(t: Triangle, position: wp.vec3) -> TriangleTouch:
    """The contact of the ball with a triangle, if they touch."""
    touch = TriangleTouch()
    point = nearest_on_triangle(t, position)
    away = position - point
    squared = wp.length_sq(away)
    if squared < (BALL_RADIUS + BALL_CONTACT_DISTANCE) * (BALL_RADIUS + BALL_CONTACT_DISTANCE) and squared > 1.0e-6:
        apart = wp.sqrt(squared)
        touch.touches = True
        touch.mesh = t.mesh
        touch.away = away / apart
        touch.contact = ball_contact(touch.away * (-BALL_RADIUS), normal_near_edges(t, point, touch.away), apart - BALL_RADIUS)
    return touch


@wp.func
def ball_item_touch(arena: ArenaGeometry, item: int, position: wp.vec3) -> TriangleTouch:
    """The contact of the ball with the triangle of an item of the arena, if they touch."""
    plane = plane_of(arena.planes, item)
    if wp.abs(wp.dot(wp.vec3(plane[0], plane[1], plane[2]), position) - plane[3]) >= BALL_RADIUS + BALL_CONTACT_DISTANCE:
        return TriangleTouch()
    return ball_triangle_touch(triangle_of(arena, item), position)


@wp.func
def add_triangle_contacts(
    arena: ArenaGeometry, cell: int, position: wp.vec3, contacts: wp.array2d(dtype=Contact), e: int, count: int, limit: int,
    lanes: Lanes, lane_touches: wp.array(dtype=TriangleTouch),
) -> int:
    """Adds contacts with the triangles near the ball, at most four points for each mesh. Each lane tests a triangle at a time;
    lane 0 adds the contacts in the order of the triangles, and returns the new count."""
    first = count
    mesh = int(-1)
    end = arena.first[cell + 1]
    for start in range(arena.first[cell], end, lanes.count):
        mine = wp.min(start + lanes.lane, end - 1)
        touch = ball_item_touch(arena, mine, position)
        found = touch.touches and mine == start + lanes.lane
        votes = ballot(lanes.lane, lanes.count, found)
        if found:
            lane_touches[lanes.slot + lanes.lane] = touch
        if votes != 0:
            sync_lanes(lanes.lane, lanes.count)
            if lanes.lane == 0:
                for k in range(lanes.count):
                    if (votes >> k) & 1 == 1:
                        mesh, first, count = add_touch(contacts, e, mesh, first, count, limit, lane_touches[lanes.slot + k])
            sync_lanes(lanes.lane, lanes.count)
    return count


@wp.func
def add_ball_contacts(
    arena: ArenaGeometry, position: wp.vec3, contacts: wp.array2d(dtype=Contact), e: int, count: int, lanes: Lanes,
    lane_touches: wp.array(dtype=TriangleTouch),
):
    """Appends the ball's contacts to the first `count` of row e: (new count, BallTouch), on lane 0. The last argument is work
    memory of the lanes."""
    start = count
    if lanes.lane == 0:
        count = add_plane_contact(contacts, e, count, wp.vec3(0.0, 0.0, 1.0), position[2])
        count = add_plane_contact(contacts, e, count, wp.vec3(0.0, 0.0, -1.0), ARENA_CEILING_Z - position[2])
        count = add_plane_contact(contacts, e, count, wp.vec3(1.0, 0.0, 0.0), ARENA_WALL_X + position[0])
        count = add_plane_contact(contacts, e, count, wp.vec3(-1.0, 0.0, 0.0), ARENA_WALL_X - position[0])
    cell = cell_of(position)
    if arena.first[cell] < arena.first[cell + 1]:
        limit = start + MAX_BALL_CONTACTS
        count = add_triangle_contacts(arena, cell, position, contacts, e, count, limit, lanes, lane_touches)
    touch = BallTouch()
    if lanes.lane == 0:
        for i in range(start, count):
            touch.contacts += 1
            touch.normals = touch.normals + contacts[e, i].normal
            touch.arms += BALL_RADIUS
    return count, touch


@wp.func
def planes_at_ball(position: wp.vec3):
    """(How many of floor, ceiling and side walls the ball touches, the last one's normal, the ball's height above it)."""
    touched = int(0)
    normal = wp.vec3()
    height = float(0.0)
    ceiling = ARENA_CEILING_Z - position[2]
    wall = ARENA_WALL_X - wp.abs(position[0])
    if position[2] < BALL_RADIUS + BALL_CONTACT_DISTANCE:
        touched += 1
        normal = wp.vec3(0.0, 0.0, 1.0)
        height = position[2]
    if ceiling < BALL_RADIUS + BALL_CONTACT_DISTANCE:
        touched += 1
        normal = wp.vec3(0.0, 0.0, -1.0)
        height = ceiling
    if wall < BALL_RADIUS + BALL_CONTACT_DISTANCE:
        touched += 1
        normal = wp.vec3(-wp.sign(position[0]), 0.0, 0.0)
        height = wall
    return touched, normal, height


@wp.func
def classify_ball(arena: ArenaGeometry, position: wp.vec3) -> int:
    """Tells what a ball touches: 0 for nothing, ON_PLANE, or ON_MESH for several planes or perhaps triangles."""
    touched, _normal, _height = planes_at_ball(position)
    if not is_over_open_floor(position):
        cell = cell_of(position)
        for i in range(arena.first[cell], arena.first[cell + 1]):
            plane = plane_of(arena.planes, i)
            if wp.abs(wp.dot(wp.vec3(plane[0], plane[1], plane[2]), position) - plane[3]) < BALL_RADIUS + BALL_CONTACT_DISTANCE:
                return ON_MESH
    return wp.min(touched, ON_MESH)
