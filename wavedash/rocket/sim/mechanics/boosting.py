"""Boost, and being supersonic."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import BOOST_PER_SECOND
from wavedash.rocket.sim.collision.bodies import DT, Body
from wavedash.rocket.sim.kernels.records import Car, vec8

wp.set_module_options({"enable_backward": False})

USED = wp.constant(BOOST_PER_SECOND)
SHORTEST = wp.constant(0.1)
"""Seconds for which a boost goes on at least"""
ON_GROUND = wp.constant(2975.0 / 3.0)
IN_AIR = wp.constant(3175.0 / 3.0)
SUPERSONIC = wp.constant(2200.0)
STAYS_SUPERSONIC = wp.constant(2100.0)


@wp.func
def boost(car: Car, controls: vec8, body: Body):
    """Uses boost and pushes forward, on the ground a little less."""
    burning = car.boost > 0.0 and (controls[6] > 0.5 or (car.boost_time > 0.0 and car.boost_time < SHORTEST))
    if burning:
        car.boost_time += DT
        car.boost = wp.max(car.boost - USED * DT, 0.0)
        forward = wp.vec3(body.rotation[0, 0], body.rotation[1, 0], body.rotation[2, 0])
        strength = IN_AIR
        if car.on_ground:
            strength = ON_GROUND
        body.kick = body.kick + forward * (strength * DT)
    else:
        car.boost_time = 0.0
    car.boost = wp.min(car.boost, 100.0)
    return car, body


@wp.func
def supersonic(car: Car) -> Car:
    """From 2,200 uu/s on, and for up to a second while it stays above 2,100."""
    least = SUPERSONIC
    if car.is_supersonic and car.supersonic_time < 1.0:
        least = STAYS_SUPERSONIC
    car.is_supersonic = wp.length_sq(car.velocity) >= least * least
    if car.is_supersonic:
        car.supersonic_time += DT
    else:
        car.supersonic_time = 0.0
    return car
