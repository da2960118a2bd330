"""Boost and supersonic speed."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import BOOST_MAX, BOOST_PER_SECOND, SUPERSONIC_SPEED
from wavedash.rocket.sim.collision.bodies import Body
from wavedash.rocket.sim.constants import (
    BOOST_ACCELERATION_AIR,
    BOOST_ACCELERATION_GROUND,
    BOOST_SHORTEST,
    DT,
    SUPERSONIC_KEPT_SECONDS,
    SUPERSONIC_KEPT_SPEED,
)
from wavedash.rocket.sim.kernels.records import Car, Controls

wp.set_module_options({"enable_backward": False})


@wp.func
def apply_boost(car: Car, controls: Controls, body: Body):
    """Uses boost and accelerates the car forward, a little less on the ground than in the air."""
    burning = car.boost > 0.0 and (controls.boost > 0.5 or (car.boost_time > 0.0 and car.boost_time < BOOST_SHORTEST))
    if burning:
        car.boost_time += DT
        car.boost = wp.max(car.boost - BOOST_PER_SECOND * DT, 0.0)
        forward = wp.vec3(body.rotation[0, 0], body.rotation[1, 0], body.rotation[2, 0])
        acceleration = BOOST_ACCELERATION_AIR
        if car.on_ground:
            acceleration = BOOST_ACCELERATION_GROUND
        body.forced_velocity = body.forced_velocity + forward * (acceleration * DT)
    else:
        car.boost_time = 0.0
    car.boost = wp.min(car.boost, BOOST_MAX)
    return car, body


@wp.func
def update_supersonic(car: Car) -> Car:
    """A car becomes supersonic at 2,200 uu/s, and stays so for up to a second while it is faster than 2,100."""
    threshold = SUPERSONIC_SPEED
    if car.is_supersonic and car.supersonic_time < SUPERSONIC_KEPT_SECONDS:
        threshold = SUPERSONIC_KEPT_SPEED
    car.is_supersonic = wp.length_sq(car.velocity) >= threshold * threshold
    if car.is_supersonic:
        car.supersonic_time += DT
    else:
        car.supersonic_time = 0.0
    return car
