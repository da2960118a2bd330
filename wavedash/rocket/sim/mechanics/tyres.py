"""Tyres: they roll, brake and grip sideways, and grip less when they slide."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.bodies import Body, inverse_effective_mass, point_velocity
from wavedash.rocket.sim.constants import BRAKE_RATE, DT, HANDBRAKE_SIDE_GRIP, MIN_SLIP_SPEED, SIDE_GRIP, TYRE_MASS
from wavedash.rocket.sim.mechanics.curves import handbrake_long_friction, lateral_friction, non_sticky_friction

wp.set_module_options({"enable_backward": False})


@wp.func
def tyre_impulse(
    body: Body, other: Body, on_other: bool, side_axle: wp.vec3, arm: wp.vec3, motion: wp.vec3, normal: wp.vec3, engine: float,
    brake: float, roll_grip: float, side_grip: float,
) -> wp.vec3:
    """Impulse of a tyre on the arena or on another body: it rolls, driven or braked, and grips sideways."""
    axle = wp.normalize(side_axle - normal * wp.dot(side_axle, normal))
    back = wp.cross(normal, axle)
    sideways = wp.dot(axle, motion)
    backwards = wp.dot(back, motion)
    inverse_mass = inverse_effective_mass(body, arm, axle)
    if on_other:
        other_arm = body.position + arm - other.position
        sideways -= wp.dot(axle, point_velocity(other, other_arm))
        backwards -= wp.dot(back, point_velocity(other, arm))  # RocketSim uses the car's arm here, not `other_arm`
        inverse_mass += inverse_effective_mass(other, other_arm, axle)
    side = -SIDE_GRIP * sideways / inverse_mass
    roll = float(0.0)
    if engine != 0.0:
        roll = -engine / TYRE_MASS
    elif brake > 0.0:
        roll = wp.clamp(-backwards * BRAKE_RATE, -brake, brake)
    return (back * (roll * roll_grip) + axle * (side * side_grip)) * (TYRE_MASS * DT)


@wp.func
def tyre_grip(motion: wp.vec3, axle: wp.vec3, normal: wp.vec3, handbrake: float, throttle: float):
    """Grip of a tyre whose mount has the velocity `motion`: (sideways, rolling). It is less when the tyre slides, with the
    handbrake, and without throttle on a slope."""
    ahead = wp.cross(axle, normal)
    sideways = wp.abs(wp.dot(motion, axle))
    slip = float(0.0)
    if sideways > MIN_SLIP_SPEED:
        slip = sideways / (wp.abs(wp.dot(motion, ahead)) + sideways)
    side = lateral_friction(slip)
    roll = float(1.0)
    if handbrake > 0.0:
        side *= (HANDBRAKE_SIDE_GRIP - 1.0) * handbrake + 1.0
        roll *= (handbrake_long_friction(slip) - 1.0) * handbrake + 1.0
    if throttle == 0.0:
        scale = non_sticky_friction(normal[2])
        side *= scale
        roll *= scale
    return side, roll
