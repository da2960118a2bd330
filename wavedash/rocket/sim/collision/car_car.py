"""Where the bodies of two cars touch."""
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
    """The cars in seats a and b: appends up to four contacts to those of the arena and returns how many there are now.

    Each contact may be a bump by A or by B; A comes first, in RocketSim the later seat. A car that is demolished is still in
    the way for the rest of the tick.
    """
    shape_a = shapes[cars[a].hitbox]
    shape_b = shapes[cars[b].hitbox]
    near = shape_a.reach + shape_b.reach
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
    """The body of a car."""
    box = Box()
    box.middle = body.position + body.rotation * shape.middle
    box.axes = body.rotation
    box.half = shape.half
    return box
