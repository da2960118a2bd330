"""Contacts between a car's body and the ball."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import BALL_RADIUS
from wavedash.rocket.sim.collision.bodies import Body
from wavedash.rocket.sim.collision.contacts import BALL, FIRST_CAR, Contact
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.constants import BALL_CONTACT_DISTANCE, CAR_BALL_FRICTION

wp.set_module_options({"enable_backward": False})

@wp.func
def find_car_ball_contact(seat: int, car: Body, shape: CarShape, ball: Body):
    """Whether the car touches the ball (1 or 0), and the contact. The box has round edges towards the ball."""
    contact = Contact()
    between = ball.position - car.position
    near = shape.bounding_radius + BALL_RADIUS + BALL_CONTACT_DISTANCE
    if wp.length_sq(between) > near * near:
        return 0, contact
    core = shape.half - wp.vec3(shape.margin, shape.margin, shape.margin)
    center = wp.transpose(car.rotation) * between - shape.center
    closest = wp.max(wp.min(center, core), -core)
    gap = wp.length(center - closest)
    away = wp.vec3()
    if gap > 0.0:
        away = (center - closest) / gap
    else:
        gap, away = nearest_face(center, core)
    contact.distance = gap - shape.margin - BALL_RADIUS
    if contact.distance > BALL_CONTACT_DISTANCE:
        return 0, contact
    contact.a = FIRST_CAR + seat
    contact.b = BALL
    contact.normal = -(car.rotation * away)
    contact.arm_b = contact.normal * BALL_RADIUS
    contact.arm_a = between + contact.arm_b + contact.normal * contact.distance
    contact.friction = CAR_BALL_FRICTION
    return 1, contact


@wp.func
def nearest_face(center: wp.vec3, core: wp.vec3):
    """The distance (negative) and direction from a point inside a box to the nearest face."""
    depth = core - wp.abs(center)
    i = int(0)
    if depth[1] < depth[0]:
        i = 1
    if depth[2] < depth[i]:
        i = 2
    away = wp.vec3()
    away[i] = wp.where(center[i] < 0.0, -1.0, 1.0)
    return -depth[i], away
