"""On wheels: throttle, brake, steering, handbrake, grip, and the force that holds a car to walls."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.bodies import DT, GRAVITY, Body
from wavedash.rocket.sim.curves import (
    drive_torque,
    handbrake_long_friction,
    lateral_friction,
    non_sticky_friction,
    powerslide_steer_angle,
    steer_angle,
)
from wavedash.rocket.sim.records import Car, vec8
from wavedash.rocket.sim.suspension import ARENA_GROUND, NOTHING, Axles, Wheels, axle_of, ground_normal

wp.set_module_options({"enable_backward": False})

ENGINE = wp.constant(180.0 * 400.0)
BRAKE = wp.constant(180.0 * (14.25 + 1.0 / 3.0))
HANDBRAKE_CLOSES = wp.constant(5.0)
HANDBRAKE_OPENS = wp.constant(2.0)
HANDBRAKE_SIDE_GRIP = wp.constant(0.1)
STANDS = wp.constant(25.0)
"""uu/s below which a coasting car brakes fully"""
COASTING_BRAKE = wp.constant(0.15)


@wp.func
def real_throttle(car: Car, controls: vec8) -> float:
    """Boosting drives at full throttle."""
    if controls[6] > 0.5 and car.boost > 0.0:
        return 1.0
    return controls[0]


@wp.func
def drive(car: Car, controls: vec8, axles: Axles, wheels: Wheels, touching: int, speed: float, body: Body):
    """Sets handbrake, engine, brake, steering and grip for the next tick, and sticks to the ground now."""
    if controls[7] > 0.5:
        car.handbrake = wp.min(car.handbrake + HANDBRAKE_CLOSES * DT, 1.0)
    else:
        car.handbrake = wp.max(car.handbrake - HANDBRAKE_OPENS * DT, 0.0)
    throttle = real_throttle(car, controls)
    axles = engine_and_brake(axles, controls, throttle, touching, speed)
    fast = wp.abs(speed)
    angle = steer_angle(fast)
    angle += (powerslide_steer_angle(fast) - angle) * car.handbrake
    axles.steer = angle * controls[1]
    axles = grip(car, axles, wheels, body, throttle)
    return car, axles, stick(wheels, throttle, fast, body)


@wp.func
def engine_and_brake(axles: Axles, controls: vec8, throttle: float, touching: int, speed: float) -> Axles:
    """Throttle against the motion brakes, none coasts; the handbrake leaves the throttle as it is."""
    engine = throttle
    brake = float(0.0)
    if controls[7] <= 0.5:
        if wp.abs(throttle) >= 0.001:
            if wp.abs(speed) > STANDS and throttle * speed < 0.0:
                brake = 1.0
                engine = 0.0
        else:
            engine = 0.0
            brake = COASTING_BRAKE
            if wp.abs(speed) < STANDS:
                brake = 1.0
    torque = drive_torque(wp.abs(speed))
    if touching < 3:
        torque *= 0.25
    axles.engine = engine * ENGINE * torque
    axles.brake = brake * BRAKE
    return axles


@wp.func
def grip(car: Car, axles: Axles, wheels: Wheels, body: Body, throttle: float) -> Axles:
    """Of each tyre that touches: less when it slides, with the handbrake, and without throttle on a slope."""
    for i in range(4):
        if wheels.ground[i] != NOTHING:
            axle = axle_of(wheels, i)
            ahead = wp.cross(axle, wheels.normal[i])
            motion = body.velocity + wp.cross(body.spin, wheels.mount[i])
            sideways = wp.abs(wp.dot(motion, axle))
            slip = float(0.0)
            if sideways > 5.0:
                slip = sideways / (wp.abs(wp.dot(motion, ahead)) + sideways)
            side = lateral_friction(slip)
            roll = float(1.0)
            if car.handbrake > 0.0:
                side *= (HANDBRAKE_SIDE_GRIP - 1.0) * car.handbrake + 1.0
                roll *= (handbrake_long_friction(slip) - 1.0) * car.handbrake + 1.0
            if throttle == 0.0:
                scale = non_sticky_friction(wheels.normal[i][2])
                side *= scale
                roll *= scale
            axles.side_grip[i] = side
            axles.roll_grip[i] = roll
    return axles


@wp.func
def stick(wheels: Wheels, throttle: float, fast: float, body: Body) -> Body:
    """A force toward the ground while a wheel touches the arena, stronger on walls while driving."""
    touches = int(0)
    for i in range(4):
        if wheels.ground[i] == ARENA_GROUND:
            touches = 1
    if touches == 1:
        up = ground_normal(wheels, wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2]))
        scale = float(0.5)
        if throttle != 0.0 or fast > STANDS:
            scale += 1.0 - wp.abs(up[2])
        body.kick = body.kick - up * (scale * GRAVITY * DT)
    return body
