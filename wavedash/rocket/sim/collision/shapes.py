"""The six hitboxes: body, wheels and inertia of a car."""
from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from wavedash.rocket.constants import HITBOXES
from wavedash.rocket.sim.constants import BOX_MARGIN, BOX_MARGIN_SHARE, CAR_MASS, CONTACT_SHARE, SUSPENSION_TRAVEL, WHEELS

CLEARANCE = 1.0
"""uu between what a car can reach and what it is taken to reach"""


@wp.struct
class CarShape:
    """Body and wheels of a hitbox, in the car's frame."""

    half: wp.vec3
    """Half sizes of the body's box"""
    edge: wp.float32
    """Radius of its edges and corners towards the ball and the arena: there the box is all within `edge` of a smaller one"""
    middle: wp.vec3
    """Middle of the box"""
    reach: wp.float32
    """Farthest point of the box from the car's origin"""
    touch: wp.float32
    """Distance from the arena below which the box touches it"""
    around_middle: wp.vec3
    """Middle and half sizes of a box around all that can touch the arena: body and wheels"""
    around_half: wp.vec3
    inverse_inertia: wp.vec3
    front_wheel: wp.vec3
    """Where the suspension of the right one begins; the left one is mirrored"""
    back_wheel: wp.vec3
    front_radius: wp.float32
    back_radius: wp.float32
    front_length: wp.float32
    """Length of the suspension at rest"""
    back_length: wp.float32


def car_shapes(device: str | wp.Device) -> wp.array:
    """In the order of HITBOXES."""
    shapes = []
    for box in HITBOXES:
        (front_radius, front_length, front), (back_radius, back_length, back) = WHEELS[box.name]
        shape: Any = CarShape()  # whose fields take Python's numbers
        shape.edge = min(BOX_MARGIN, BOX_MARGIN_SHARE * min(box.size))
        half, middle = 0.5 * np.array(box.size) - BOX_MARGIN + shape.edge, np.array(box.offset)
        shape.half, shape.middle = wp.vec3(*half), wp.vec3(*middle)
        shape.reach = np.linalg.norm(np.abs(middle) + half)
        shape.touch = CONTACT_SHARE * (np.linalg.norm(half) + np.linalg.norm(middle))
        x, y, z = 4.0 * half * half
        shape.inverse_inertia = wp.vec3(*(12.0 / CAR_MASS / pair for pair in (y + z, x + z, x + y)))
        shape.front_wheel, shape.back_wheel = wp.vec3(*front), wp.vec3(*back)
        shape.front_radius, shape.back_radius = front_radius, back_radius
        shape.front_length, shape.back_length = front_length - SUSPENSION_TRAVEL, back_length - SUSPENSION_TRAVEL
        wheels = np.array([front, back])
        ends = wheels - [[0.0, 0.0, front_length + front_radius], [0.0, 0.0, back_length + back_radius]]
        points = np.concatenate([wheels, ends, [1, -1, 1] * wheels, middle - half - shape.touch, middle + half + shape.touch],
                                axis=None).reshape(-1, 3)
        low, high = points.min(axis=0) - CLEARANCE, points.max(axis=0) + CLEARANCE
        shape.around_middle, shape.around_half = wp.vec3(*(0.5 * (low + high))), wp.vec3(*(0.5 * (high - low)))
        shapes.append(shape)
    return wp.array(shapes, dtype=CarShape, device=device)
