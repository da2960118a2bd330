"""Contacts: points where two bodies, or a body and the arena, touch."""
from __future__ import annotations

import warp as wp

wp.set_module_options({"enable_backward": False})

ARENA = wp.constant(-1)
BALL = wp.constant(0)
FIRST_CAR = wp.constant(1)
"""Numbers of bodies: the arena, the ball, and the car in seat 0; the other cars follow"""


@wp.struct
class Contact:
    """Body A touches body B, which may be the arena."""

    a: wp.int32
    b: wp.int32
    arm_a: wp.vec3
    """Vector from A's origin to the contact on A's surface"""
    arm_b: wp.vec3
    """Vector from B's origin to the contact on B's surface; zero for the arena"""
    normal: wp.vec3
    """The normal of B's surface; it points to A"""
    distance: wp.float32
    """Distance between the surfaces; negative where they overlap"""
    friction: wp.float32
    restitution: wp.float32
    push_only: wp.bool
    """It pushes bodies out of an overlap and does not change their velocities"""


@wp.struct
class TriangleTouch:
    """Whether a car or the ball touches a triangle, and where."""

    touches: wp.bool
    mesh: wp.int32
    """The mesh to which the triangle belongs"""
    away: wp.vec3
    """Unit vector from the triangle to the body"""
    contact: Contact


@wp.func
def arena_contact(arm: wp.vec3, normal: wp.vec3, distance: float) -> Contact:
    """A contact with the arena of body 0, without friction or restitution."""
    contact = Contact()
    contact.b = ARENA
    contact.arm_a = arm
    contact.normal = normal
    contact.distance = distance
    return contact


def max_arena_contacts(seats: int) -> int:
    """The most contacts that bodies have with the arena: ten of each car, 12 of the ball, and the mean of these."""
    return 13 + 10 * seats


def max_contacts(seats: int) -> int:
    """The most contacts of an arena: those with the arena, one of each car with the ball, four of any two cars."""
    return max_arena_contacts(seats) + seats + 4 * (seats * (seats - 1) // 2)
