"""Contacts between the bodies of two cars."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.bodies import Body
from wavedash.rocket.sim.collision.box_box import Box, add_box_contacts
from wavedash.rocket.sim.collision.contacts import FIRST_CAR, Contact
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.constants import CAR_CAR_FRICTION, CAR_CAR_RESTITUTION
from wavedash.rocket.sim.kernels.records import Car, EventRecord
from wavedash.rocket.sim.mechanics.bumps import decide_bump

wp.set_module_options({"enable_backward": False})


@wp.func
def find_car_car_contacts(
    contacts: wp.array2d(dtype=Contact), e: int, count: int, a: int, b: int, bodies: wp.array(dtype=Body),
    cars: wp.array(dtype=Car), shapes: wp.array(dtype=CarShape), events: wp.array(dtype=EventRecord),
) -> int:
    """Appends up to four contacts between the cars in seats a and b, and returns the new count.

    Each contact may be a bump by A or by B; as in RocketSim, A is the later seat and is decided first. A car that is demolished
    stays solid for the rest of the tick.
    """
    shape_a = shapes[cars[a].hitbox]
    shape_b = shapes[cars[b].hitbox]
    near = shape_a.bounding_radius + shape_b.bounding_radius
    if wp.length_sq(bodies[FIRST_CAR + b].position - bodies[FIRST_CAR + a].position) > near * near:
        return count
    before = count
    count = add_box_contacts(contacts, e, count, box_of(bodies[FIRST_CAR + a], shape_a), box_of(bodies[FIRST_CAR + b], shape_b))
    for i in range(before, count):
        contacts[e, i].a = FIRST_CAR + a
        contacts[e, i].b = FIRST_CAR + b
        contacts[e, i].arm_a = contacts[e, i].arm_a - bodies[FIRST_CAR + a].position
        contacts[e, i].arm_b = contacts[e, i].arm_b - bodies[FIRST_CAR + b].position
        contacts[e, i].friction = CAR_CAR_FRICTION
        contacts[e, i].restitution = CAR_CAR_RESTITUTION
        decide_bump(a, b, contacts[e, i].arm_a, bodies, cars, events)
        decide_bump(b, a, contacts[e, i].arm_b, bodies, cars, events)
    return count


@wp.func
def box_of(body: Body, shape: CarShape) -> Box:
    """The box of a car's body."""
    box = Box()
    box.center = body.position + body.rotation * shape.center
    box.axes = body.rotation
    box.half = shape.half
    return box
