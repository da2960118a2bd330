"""In the air: the torque of a dodge, air control and throttle; near the ground, the roll back onto the wheels."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.bodies import DT, Body
from wavedash.rocket.sim.kernels.records import Car, vec8
from wavedash.rocket.sim.mechanics.jumping import DODGE_SECONDS

wp.set_module_options({"enable_backward": False})

DODGE_ROLL = wp.constant(260.0)
DODGE_PITCH = wp.constant(224.0)
PITCH_LOCK = wp.constant(0.65 + 0.3)
"""Seconds from a dodge until the pitch is free again"""
TORQUE_SCALE = wp.constant(2.0 * wp.pi / 65536.0 * 1000.0)
THROTTLE = wp.constant(200.0 / 3.0)
ROLL_FORCE = wp.constant(100.0)
ROLL_TORQUE = wp.constant(80.0)


@wp.func
def fly(car: Car, controls: vec8, free: bool, body: Body):
    """With fewer than three wheels on the ground: (whether the car goes on flipping, spin and velocity that it gets). `free`:
    no wheel touches, so the stick turns the car."""
    forward = wp.vec3(body.rotation[0, 0], body.rotation[1, 0], body.rotation[2, 0])
    twist = wp.vec3()
    car.is_flipping = car.is_flipping and car.has_flipped and car.flip_time < DODGE_SECONDS
    steered = not car.is_flipping
    if car.is_flipping:
        torque = car.flip_torque
        if wp.length_sq(torque) == 0.0:
            steered = True
        else:
            if torque[1] * controls[2] > 0.0:
                torque = wp.vec3(torque[0], torque[1] * (1.0 - wp.min(wp.abs(controls[2]), 1.0)), torque[2])
                steered = True
            torque = wp.vec3(torque[0] * DODGE_ROLL, torque[1] * DODGE_PITCH, 0.0)
            twist = body.rotation * torque * DT
    if steered and free and not car.is_auto_flipping:
        twist = twist + air_control(car, controls, body) * DT
    return car.is_flipping, twist, forward * (controls[0] * THROTTLE * DT)


@wp.func
def air_control(car: Car, controls: vec8, body: Body) -> wp.vec3:
    """Angular acceleration of the stick and of the damping against the spin."""
    right = -wp.vec3(body.rotation[0, 1], body.rotation[1, 1], body.rotation[2, 1])
    up = wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2])
    back = -wp.vec3(body.rotation[0, 0], body.rotation[1, 0], body.rotation[2, 0])
    pitch = controls[2]
    if car.is_flipping or (car.has_flipped and car.flip_time < PITCH_LOCK):
        if controls[2] != 0.0 or controls[3] != 0.0 or controls[4] != 0.0:
            pitch = 0.0
    torque = right * (pitch * 130.0) + up * (controls[3] * 95.0) + back * (controls[4] * 400.0)
    damping = right * (wp.dot(right, body.spin) * 30.0 * (1.0 - wp.abs(pitch)))
    damping = damping + up * (wp.dot(up, body.spin) * 20.0 * (1.0 - wp.abs(controls[3])))
    damping = damping + back * (wp.dot(back, body.spin) * 50.0)
    return (torque - damping) * TORQUE_SCALE


@wp.func
def auto_roll(ground: wp.vec3, body: Body):
    """Throttle with some wheels off the ground, or the body on it: (spin, velocity) to turn the car upright, pull it down."""
    forward = wp.vec3(body.rotation[0, 0], body.rotation[1, 0], body.rotation[2, 0])
    right = wp.vec3(body.rotation[0, 1], body.rotation[1, 1], body.rotation[2, 1])
    level_right = wp.cross(ground, forward)
    level_forward = wp.cross(-ground, level_right)
    roll = 1.0 - wp.clamp(wp.dot(right, level_right), 0.0, 1.0)
    pitch = 1.0 - wp.clamp(wp.dot(forward, level_forward), 0.0, 1.0)
    roll_torque = forward * (roll * wp.where(wp.dot(right, ground) >= 0.0, -1.0, 1.0))
    pitch_torque = right * (pitch * wp.where(wp.dot(forward, ground) >= 0.0, 1.0, -1.0))
    return (roll_torque + pitch_torque) * (ROLL_TORQUE * DT), ground * (-ROLL_FORCE * DT)
