"""A car hits the ball: the extra velocity that the game adds to the collision."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.bodies import Body
from wavedash.rocket.sim.collision.contacts import Contact
from wavedash.rocket.sim.constants import EXTRA_HIT_FORWARD, EXTRA_HIT_HEIGHT, EXTRA_HIT_MAX_SPEED
from wavedash.rocket.sim.kernels.records import Car
from wavedash.rocket.sim.mechanics.curves import extra_hit_factor

wp.set_module_options({"enable_backward": False})


@wp.func
def hit_ball(car: Car, body: Body, ball: Body, contact: Contact, tick: int):
    """Returns the car with the hit written to its state, and the velocity that the ball gets at the end of the tick.

    A car cannot add velocity in two successive ticks. Positions and velocities are those before the collision.
    """
    car.ball_hit_tick = tick
    car.ball_hit_offset = wp.transpose(ball.rotation) * contact.arm_b
    car.ball_hit_position = ball.position
    car.ball_hit_impulse = wp.vec3()
    last = car.ball_hit_impulse_tick
    if last < 0 or tick > last + 1 or last > tick:
        car.ball_hit_impulse_tick = tick
        car.ball_hit_impulse = extra_hit(body, ball)
    return car, car.ball_hit_impulse


@wp.func
def extra_hit(car: Body, ball: Body) -> wp.vec3:
    """Velocity that the game adds to the ball on top of the collision: flatter, and less along the car's nose."""
    speed = wp.min(wp.length(ball.velocity - car.velocity), EXTRA_HIT_MAX_SPEED)
    forward = wp.vec3(car.rotation[0, 0], car.rotation[1, 0], car.rotation[2, 0])
    between = ball.position - car.position
    direction = wp.normalize(wp.vec3(between[0], between[1], between[2] * EXTRA_HIT_HEIGHT))
    direction = wp.normalize(direction - forward * (wp.dot(direction, forward) * (1.0 - EXTRA_HIT_FORWARD)))
    return direction * (speed * extra_hit_factor(speed))
