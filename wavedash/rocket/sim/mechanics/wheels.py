"""Where the wheels of a car are, and how far they reach: front right, front left, back right, back left."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.shapes import SUSPENSION_TRAVEL, CarShape

wp.set_module_options({"enable_backward": False})

TRAVEL = wp.constant(SUSPENSION_TRAVEL)
"""Of a wheel's suspension, up and down"""
RAY_SHORTENED = wp.constant(2.5)


@wp.func
def wheel_of(shape: CarShape, i: int) -> wp.vec3:
    """Where a wheel's suspension begins, in the car's frame."""
    place = shape.back_wheel
    if i < 2:
        place = shape.front_wheel
    if i % 2 == 1:
        place = wp.vec3(place[0], -place[1], place[2])
    return place


@wp.func
def radius_of(shape: CarShape, i: int) -> float:
    """Of a wheel."""
    if i < 2:
        return shape.front_radius
    return shape.back_radius


@wp.func
def length_of(shape: CarShape, i: int) -> float:
    """Of a wheel's suspension at rest."""
    if i < 2:
        return shape.front_length
    return shape.back_length


@wp.func
def reach_of(shape: CarShape, i: int) -> float:
    """Length of the ray down from a wheel's mount."""
    return length_of(shape, i) + TRAVEL + radius_of(shape, i) - RAY_SHORTENED
