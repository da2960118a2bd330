"""The six hitboxes: body, wheels and inertia of a car."""
from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from wavedash.rocket.constants import HITBOXES

TOUCH_SHARE = 0.02
"""What lies within this share of the body's radius is touched"""
ROUND_ABOUT = 1.0
"""uu between what a car can reach and what it is taken to reach"""
SUSPENSION_TRAVEL = 12.0
MARGIN = 2.0
"""What Bullet takes off a box before it rounds its edges. Flat boxes get less back: up to 0.4 uu smaller than hitboxes."""
_WHEELS = {  # radius, length at rest and place of the front wheel on the right, then of the back wheel
    "octane": (12.5, 38.755, (51.25, 25.90, 20.755), 15.0, 37.055, (-33.75, 29.50, 20.755)),
    "dominus": (12.0, 33.95, (50.30, 31.10, 15.75), 13.5, 33.85, (-34.75, 33.00, 15.75)),
    "plank": (12.5, 31.9242, (49.97, 27.80, 12.0942), 17.0, 27.9242, (-35.43, 20.28, 12.0942)),
    "breakout": (13.5, 29.7, (51.50, 26.67, 11.75), 15.0, 29.666, (-35.75, 35.00, 11.75)),
    "hybrid": (12.5, 38.755, (51.25, 25.90, 20.755), 15.0, 37.055, (-34.00, 29.50, 20.755)),
    "merc": (15.0, 39.505, (51.25, 25.90, 21.505), 15.0, 39.105, (-33.75, 29.50, 21.505)),
}


@wp.struct
class CarShape:
    """Of a hitbox, in the car's frame."""

    half: wp.vec3
    """Half sizes of the body's box"""
    edge: wp.float32
    """Radius of its edges and corners towards the ball and the arena: there the box is all within `edge` of a smaller one"""
    middle: wp.vec3
    """Of the box"""
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
    """Of the suspension at rest"""
    back_length: wp.float32


def car_shapes(device: str | wp.Device) -> wp.array:
    """In the order of HITBOXES."""
    shapes = []
    for box in HITBOXES:
        front_radius, front_length, front, back_radius, back_length, back = _WHEELS[box.name]
        shape: Any = CarShape()  # whose fields take Python's numbers
        shape.edge = min(MARGIN, 0.05 * min(box.size))
        half, middle = 0.5 * np.array(box.size) - MARGIN + shape.edge, np.array(box.offset)
        shape.half, shape.middle = wp.vec3(*half), wp.vec3(*middle)
        shape.reach = np.linalg.norm(np.abs(middle) + half)
        shape.touch = TOUCH_SHARE * (np.linalg.norm(half) + np.linalg.norm(middle))
        x, y, z = 4.0 * half * half
        shape.inverse_inertia = wp.vec3(*(12.0 / 180.0 / pair for pair in (y + z, x + z, x + y)))
        shape.front_wheel, shape.back_wheel = wp.vec3(*front), wp.vec3(*back)
        shape.front_radius, shape.back_radius = front_radius, back_radius
        shape.front_length, shape.back_length = front_length - SUSPENSION_TRAVEL, back_length - SUSPENSION_TRAVEL
        wheels = np.array([front, back])
        ends = wheels - [[0.0, 0.0, front_length + front_radius], [0.0, 0.0, back_length + back_radius]]
        points = np.concatenate([wheels, ends, [1, -1, 1] * wheels, middle - half - shape.touch, middle + half + shape.touch],
                                axis=None).reshape(-1, 3)
        low, high = points.min(axis=0) - ROUND_ABOUT, points.max(axis=0) + ROUND_ABOUT
        shape.around_middle, shape.around_half = wp.vec3(*(0.5 * (low + high))), wp.vec3(*(0.5 * (high - low)))
        shapes.append(shape)
    return wp.array(shapes, dtype=CarShape, device=device)
