"""A contact: a point where two bodies touch, or a body and the arena."""
from __future__ import annotations

import warp as wp

wp.set_module_options({"enable_backward": False})

ARENA = wp.constant(-1)
BALL = wp.constant(0)
FIRST_CAR = wp.constant(1)
"""Number of the body in seat 0"""


@wp.struct
class Contact:
    """Body A touches body B or the arena. Bodies: 0 is the ball, 1 + seat a car, -1 the arena."""

    a: wp.int32
    b: wp.int32
    arm_a: wp.vec3
    """From A's origin to the contact on A's surface"""
    arm_b: wp.vec3
    """From B's origin to the contact on B's surface; zero for the arena"""
    normal: wp.vec3
    """On B's surface, points to A"""
    distance: wp.float32
    """Between the surfaces; negative: they overlap"""
    friction: wp.float32
    restitution: wp.float32
    push_only: wp.bool
    """It takes bodies out of an overlap and does not change velocities"""


@wp.struct
class TriangleTouch:
    """What a car or the ball and a triangle have in common."""

    touches: wp.bool
    mesh: wp.int32
    """Mesh to which the triangle belongs"""
    away: wp.vec3
    """From the triangle to the body"""
    contact: Contact


def max_arena_contacts(seats: int) -> int:
    """How many contacts bodies can have with the arena: each car ten, the ball 12 and the one that stands for them."""
    return 13 + 10 * seats


def max_contacts(seats: int) -> int:
    """How many contacts there can be: with the arena, one of each car with the ball, four of any two cars."""
    return max_arena_contacts(seats) + seats + 4 * (seats * (seats - 1) // 2)
