"""On wheels: throttle, brake, steering, handbrake, and the force that holds a car to walls."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.bodies import DT, GRAVITY, Body
from wavedash.rocket.sim.kernels.records import Car, vec8
from wavedash.rocket.sim.mechanics.curves import drive_torque, powerslide_steer_angle, steer_angle
from wavedash.rocket.sim.mechanics.suspension import Axles, Footing, ground_normal

wp.set_module_options({"enable_backward": False})

ENGINE = wp.constant(180.0 * 400.0)
BRAKE = wp.constant(180.0 * (14.25 + 1.0 / 3.0))
HANDBRAKE_CLOSES = wp.constant(5.0)
HANDBRAKE_OPENS = wp.constant(2.0)
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
def pull_handbrake(handbrake: float, controls: vec8) -> float:
    """It closes and opens slowly."""
    if controls[7] > 0.5:
        return wp.min(handbrake + HANDBRAKE_CLOSES * DT, 1.0)
    return wp.max(handbrake - HANDBRAKE_OPENS * DT, 0.0)


@wp.func
def drive(handbrake: float, throttle: float, controls: vec8, axles: Axles, footing: Footing, speed: float, body: Body):
    """Sets engine, brake and steering for the next tick, and sticks to the ground now."""
    axles = engine_and_brake(axles, controls, throttle, footing.touching, speed)
    fast = wp.abs(speed)
    angle = steer_angle(fast)
    angle += (powerslide_steer_angle(fast) - angle) * handbrake
    axles.steer = angle * controls[1]
    if footing.on_arena:
        body.kick = body.kick + sticking(footing, throttle, fast, body)
    return axles, body


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
def sticking(footing: Footing, throttle: float, fast: float, body: Body) -> wp.vec3:
    """Velocity that a force toward the arena's ground adds, stronger on walls while driving."""
    up = ground_normal(footing, wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2]))
    scale = float(0.5)
    if throttle != 0.0 or fast > STANDS:
        scale += 1.0 - wp.abs(up[2])
    return up * (-scale * GRAVITY * DT)
