"""A car's body touches the ball: where, and the extra hit that the game adds to the collision."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import BALL_RADIUS
from wavedash.rocket.sim.collision.bodies import Body
from wavedash.rocket.sim.collision.contacts import BALL, FIRST_CAR, Contact
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.kernels.records import Car
from wavedash.rocket.sim.mechanics.curves import extra_hit_factor

wp.set_module_options({"enable_backward": False})

RADIUS = wp.constant(BALL_RADIUS)
FRICTION = wp.constant(2.0)
CONTACT_DISTANCE = wp.constant(0.02 * (BALL_RADIUS + 4.0))
"""Between the surfaces, up to which they touch: Bullet's share of the ball's bounding sphere"""
EXTRA_HIT_MAX_SPEED = wp.constant(4600.0)
EXTRA_HIT_FLATNESS = wp.constant(0.35)
"""The extra hit goes along the line from car to ball with its height scaled by this"""
EXTRA_HIT_FORWARD = wp.constant(0.65)
"""and its part along the car's nose by this"""


@wp.func
def touch_ball(seat: int, car: Body, shape: CarShape, ball: Body):
    """Whether the car touches the ball (1 or 0), and where. Towards the ball the box has round edges."""
    contact = Contact()
    between = ball.position - car.position
    near = shape.reach + RADIUS + CONTACT_DISTANCE
    if wp.length_sq(between) > near * near:
        return 0, contact
    core = shape.half - wp.vec3(shape.edge, shape.edge, shape.edge)
    center = wp.transpose(car.rotation) * between - shape.middle
    closest = wp.max(wp.min(center, core), -core)
    gap = wp.length(center - closest)
    away = wp.vec3()
    if gap > 0.0:
        away = (center - closest) / gap
    else:
        gap, away = inside(center, core)
    contact.distance = gap - shape.edge - RADIUS
    if contact.distance > CONTACT_DISTANCE:
        return 0, contact
    contact.a = FIRST_CAR + seat
    contact.b = BALL
    contact.normal = -(car.rotation * away)
    contact.arm_b = contact.normal * RADIUS
    contact.arm_a = between + contact.arm_b + contact.normal * contact.distance
    contact.friction = FRICTION
    return 1, contact


@wp.func
def inside(center: wp.vec3, core: wp.vec3):
    """Distance (negative) and direction to the nearest face, of a point inside a box."""
    depth = core - wp.abs(center)
    i = int(0)
    if depth[1] < depth[0]:
        i = 1
    if depth[2] < depth[i]:
        i = 2
    away = wp.vec3()
    away[i] = wp.where(center[i] < 0.0, -1.0, 1.0)
    return -depth[i], away


@wp.func
def hit_ball(car: Car, body: Body, ball: Body, contact: Contact, tick: int):
    """Returns the car, which notes the hit, and the velocity that the ball gets at the end of the tick.

    The car cannot add velocity in two ticks in a row. Positions and velocities are those before the collision.
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
    direction = wp.normalize(wp.vec3(between[0], between[1], between[2] * EXTRA_HIT_FLATNESS))
    direction = wp.normalize(direction - forward * (wp.dot(direction, forward) * (1.0 - EXTRA_HIT_FORWARD)))
    return direction * (speed * extra_hit_factor(speed))
