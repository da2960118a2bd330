"""The six hitboxes: body, wheels and inertia of a car."""
from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from wavedash.rocket.constants import HITBOXES
from wavedash.rocket.sim.constants import BOX_MARGIN, BOX_MARGIN_SHARE, CAR_MASS, CONTACT_SHARE, SUSPENSION_TRAVEL, WHEELS

CLEARANCE = 1.0
"""uu by which the bounds of a car are larger than they must be"""


@wp.struct
class CarShape:
    """Body and wheels of a hitbox, in the car's frame."""

    half: wp.vec3
    """Half sizes of the body's box"""
    margin: wp.float32
    """Bullet's collision margin: the radius of the box's edges and corners towards the ball and the arena"""
    center: wp.vec3
    """Center of the box"""
    bounding_radius: wp.float32
    """Distance of the box's farthest point from the car's origin"""
    contact_threshold: wp.float32
    """Distance from the arena below which the box touches it"""
    bounds_center: wp.vec3
    """Center and half sizes of a box around all that can touch the arena: body and wheels"""
    bounds_half: wp.vec3
    inverse_inertia: wp.vec3
    front_wheel: wp.vec3
    """Where the suspension of the right front wheel begins; the left one is mirrored"""
    back_wheel: wp.vec3
    front_radius: wp.float32
    back_radius: wp.float32
    front_length: wp.float32
    """Length of the suspension at rest"""
    back_length: wp.float32


def car_shapes(device: str | wp.Device) -> wp.array:
    """The shapes of all hitboxes, in the order of HITBOXES."""
    shapes = []
    for box in HITBOXES:
        (front_radius, front_length, front), (back_radius, back_length, back) = WHEELS[box.name]
        shape: Any = CarShape()  # Any, because its fields take Python's numbers
        shape.margin = min(BOX_MARGIN, BOX_MARGIN_SHARE * min(box.size))
        half, center = 0.5 * np.array(box.size) - BOX_MARGIN + shape.margin, np.array(box.offset)
        shape.half, shape.center = wp.vec3(*half), wp.vec3(*center)
        shape.bounding_radius = np.linalg.norm(np.abs(center) + half)
        shape.contact_threshold = CONTACT_SHARE * (np.linalg.norm(half) + np.linalg.norm(center))
        x, y, z = 4.0 * half * half
        shape.inverse_inertia = wp.vec3(*(12.0 / CAR_MASS / pair for pair in (y + z, x + z, x + y)))
        shape.front_wheel, shape.back_wheel = wp.vec3(*front), wp.vec3(*back)
        shape.front_radius, shape.back_radius = front_radius, back_radius
        shape.front_length, shape.back_length = front_length - SUSPENSION_TRAVEL, back_length - SUSPENSION_TRAVEL
        wheels = np.array([front, back])
        ends = wheels - [[0.0, 0.0, front_length + front_radius], [0.0, 0.0, back_length + back_radius]]
        corners = center - half - shape.contact_threshold, center + half + shape.contact_threshold
        points = np.concatenate([wheels, ends, [1, -1, 1] * wheels, *corners], axis=None).reshape(-1, 3)
        low, high = points.min(axis=0) - CLEARANCE, points.max(axis=0) + CLEARANCE
        shape.bounds_center, shape.bounds_half = wp.vec3(*(0.5 * (low + high))), wp.vec3(*(0.5 * (high - low)))
        shapes.append(shape)
    return wp.array(shapes, dtype=CarShape, device=device)
