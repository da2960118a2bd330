"""Flying: the torque of a flip, air control and throttle in the air; near the ground, the roll back onto the wheels."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import FLIP_SECONDS
from wavedash.rocket.sim.collision.bodies import Body
from wavedash.rocket.sim.constants import (
    AIR_DAMPING_PITCH,
    AIR_DAMPING_ROLL,
    AIR_DAMPING_YAW,
    AIR_THROTTLE,
    AIR_TORQUE_PITCH,
    AIR_TORQUE_ROLL,
    AIR_TORQUE_SCALE,
    AIR_TORQUE_YAW,
    AUTO_ROLL_ACCELERATION,
    AUTO_ROLL_TORQUE,
    DT,
    FLIP_PITCH_LOCK,
    FLIP_TORQUE_PITCH,
    FLIP_TORQUE_ROLL,
)
from wavedash.rocket.sim.kernels.records import Car, Controls

wp.set_module_options({"enable_backward": False})


@wp.func
def apply_air_forces(car: Car, controls: Controls, airborne: bool, body: Body):
    """Forces on a car with fewer than three wheels on the ground: (whether it still flips, the spin and the velocity that it
    gains). `airborne`: no wheel touches, so air control turns the car."""
    forward = wp.vec3(body.rotation[0, 0], body.rotation[1, 0], body.rotation[2, 0])
    spin = wp.vec3()
    car.is_flipping = car.is_flipping and car.has_flipped and car.flip_time < FLIP_SECONDS
    has_air_control = not car.is_flipping
    if car.is_flipping:
        torque = car.flip_torque
        if wp.length_sq(torque) == 0.0:
            has_air_control = True
        else:
            if torque[1] * controls.pitch > 0.0:
                torque = wp.vec3(torque[0], torque[1] * (1.0 - wp.min(wp.abs(controls.pitch), 1.0)), torque[2])
                has_air_control = True
            torque = wp.vec3(torque[0] * FLIP_TORQUE_ROLL, torque[1] * FLIP_TORQUE_PITCH, 0.0)
            spin = body.rotation * torque * DT
    if has_air_control and airborne and not car.is_auto_flipping:
        spin = spin + air_control(car, controls, body) * DT
    return car.is_flipping, spin, forward * (controls.throttle * AIR_THROTTLE * DT)


@wp.func
def air_control(car: Car, controls: Controls, body: Body) -> wp.vec3:
    """Angular acceleration by the stick, and by the damping of the spin."""
    right = -wp.vec3(body.rotation[0, 1], body.rotation[1, 1], body.rotation[2, 1])
    up = wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2])
    back = -wp.vec3(body.rotation[0, 0], body.rotation[1, 0], body.rotation[2, 0])
    pitch = controls.pitch
    if car.is_flipping or (car.has_flipped and car.flip_time < FLIP_PITCH_LOCK):
        if controls.pitch != 0.0 or controls.yaw != 0.0 or controls.roll != 0.0:
            pitch = 0.0
    torque = right * (pitch * AIR_TORQUE_PITCH) + up * (controls.yaw * AIR_TORQUE_YAW)
    torque = torque + back * (controls.roll * AIR_TORQUE_ROLL)
    damping = right * (wp.dot(right, body.spin) * AIR_DAMPING_PITCH * (1.0 - wp.abs(pitch)))
    damping = damping + up * (wp.dot(up, body.spin) * AIR_DAMPING_YAW * (1.0 - wp.abs(controls.yaw)))
    damping = damping + back * (wp.dot(back, body.spin) * AIR_DAMPING_ROLL)
    return (torque - damping) * AIR_TORQUE_SCALE


@wp.func
def auto_roll(ground: wp.vec3, body: Body):
    """(Spin, velocity) that turn a car upright and pull it down. It applies to a car with throttle that has some wheels off the
    ground, or its body on it."""
    forward = wp.vec3(body.rotation[0, 0], body.rotation[1, 0], body.rotation[2, 0])
    right = wp.vec3(body.rotation[0, 1], body.rotation[1, 1], body.rotation[2, 1])
    level_right = wp.cross(ground, forward)
    level_forward = wp.cross(-ground, level_right)
    roll = 1.0 - wp.clamp(wp.dot(right, level_right), 0.0, 1.0)
    pitch = 1.0 - wp.clamp(wp.dot(forward, level_forward), 0.0, 1.0)
    roll_torque = forward * (roll * wp.where(wp.dot(right, ground) >= 0.0, -1.0, 1.0))
    pitch_torque = right * (pitch * wp.where(wp.dot(forward, ground) >= 0.0, 1.0, -1.0))
    return (roll_torque + pitch_torque) * (AUTO_ROLL_TORQUE * DT), ground * (-AUTO_ROLL_ACCELERATION * DT)
