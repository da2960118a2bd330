"""Driving: throttle, brake, steering, handbrake, and the force that holds a car to walls."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import GRAVITY
from wavedash.rocket.sim.collision.bodies import Body
from wavedash.rocket.sim.constants import (
    BRAKE_FORCE,
    COASTING_BRAKE,
    DT,
    ENGINE_FORCE,
    FEW_WHEELS_TORQUE,
    HANDBRAKE_FALL,
    HANDBRAKE_RISE,
    STICKY_FORCE,
    STOPPED_SPEED,
    THROTTLE_DEADZONE,
)
from wavedash.rocket.sim.kernels.records import Car, Controls
from wavedash.rocket.sim.mechanics.curves import drive_torque, powerslide_steer_angle, steer_angle
from wavedash.rocket.sim.mechanics.suspension import Drivetrain, WheelForces, ground_normal

wp.set_module_options({"enable_backward": False})


@wp.func
def effective_throttle(car: Car, controls: Controls) -> float:
    """The throttle of a car: full while it boosts."""
    if controls.boost > 0.5 and car.boost > 0.0:
        return 1.0
    return controls.throttle


@wp.func
def update_handbrake(handbrake: float, controls: Controls) -> float:
    """How far the handbrake is closed, 0 to 1, after this tick: it closes and opens slowly."""
    if controls.handbrake > 0.5:
        return wp.min(handbrake + HANDBRAKE_RISE * DT, 1.0)
    return wp.max(handbrake - HANDBRAKE_FALL * DT, 0.0)


@wp.func
def apply_driving(
    handbrake: float, throttle: float, controls: Controls, drivetrain: Drivetrain, forces: WheelForces, speed: float, body: Body
):
    """Sets engine, brake and steering for the next tick, and applies the force that holds the car to the ground now."""
    drivetrain = set_engine_and_brake(drivetrain, controls, throttle, forces.wheels_touching, speed)
    abs_speed = wp.abs(speed)
    angle = steer_angle(abs_speed)
    angle += (powerslide_steer_angle(abs_speed) - angle) * handbrake
    drivetrain.steer = angle * controls.steer
    if forces.on_arena:
        body.forced_velocity = body.forced_velocity + sticky_velocity(forces, throttle, abs_speed, body)
    return drivetrain, body


@wp.func
def set_engine_and_brake(
    drivetrain: Drivetrain, controls: Controls, throttle: float, wheels_touching: int, speed: float
) -> Drivetrain:
    """Throttle against the motion brakes, and a car without throttle coasts; with the handbrake the engine follows the
    throttle."""
    engine = throttle
    brake = float(0.0)
    if controls.handbrake <= 0.5:
        if wp.abs(throttle) >= THROTTLE_DEADZONE:
            if wp.abs(speed) > STOPPED_SPEED and throttle * speed < 0.0:
                brake = 1.0
                engine = 0.0
        else:
            engine = 0.0
            brake = COASTING_BRAKE
            if wp.abs(speed) < STOPPED_SPEED:
                brake = 1.0
    torque = drive_torque(wp.abs(speed))
    if wheels_touching < 3:
        torque *= FEW_WHEELS_TORQUE
    drivetrain.engine = engine * ENGINE_FORCE * torque
    drivetrain.brake = brake * BRAKE_FORCE
    return drivetrain


@wp.func
def sticky_velocity(forces: WheelForces, throttle: float, abs_speed: float, body: Body) -> wp.vec3:
    """Velocity that the force toward the ground adds; it is stronger on walls while the car drives."""
    up = ground_normal(forces, wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2]))
    scale = float(STICKY_FORCE)
    if throttle != 0.0 or abs_speed > STOPPED_SPEED:
        scale += 1.0 - wp.abs(up[2])
    return up * (-scale * GRAVITY * DT)
