"""Mounts, sizes and rays of a car's wheels, in the order front right, front left, back right, back left."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.constants import RAY_SHORTENED, SUSPENSION_TRAVEL

wp.set_module_options({"enable_backward": False})


@wp.func
def wheel_mount(shape: CarShape, i: int) -> wp.vec3:
    """Where a wheel's suspension begins, in the car's frame."""
    mount = shape.back_wheel
    if i < 2:
        mount = shape.front_wheel
    if i % 2 == 1:
        mount = wp.vec3(mount[0], -mount[1], mount[2])
    return mount


@wp.func
def wheel_radius(shape: CarShape, i: int) -> float:
    """Radius of wheel i."""
    if i < 2:
        return shape.front_radius
    return shape.back_radius


@wp.func
def suspension_length(shape: CarShape, i: int) -> float:
    """Length of the suspension of wheel i at rest."""
    if i < 2:
        return shape.front_length
    return shape.back_length


@wp.func
def ray_length(shape: CarShape, i: int) -> float:
    """Length of the ray down from the mount of wheel i."""
    return suspension_length(shape, i) + SUSPENSION_TRAVEL + wheel_radius(shape, i) - RAY_SHORTENED
