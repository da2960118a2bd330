"""Bodies: wheels that stand on the ball or on another car."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .constants import BALL_RADIUS
from .field import Shape
from .motion import Motion

if TYPE_CHECKING:
    from .car import Car

Array = NDArray[Any]
NEAR = 200.0
"""uu from car to car or ball beyond which no wheel stands on the other"""


def standing_wheels(cars: Sequence[Car], at: Sequence[Motion], ball: Motion) -> list[Array]:
    """[4] bool of each car: its wheels that stand on the ball or on another car. `at`: where the cars are."""
    places = np.array([motion.position for motion in at] + [ball.position])
    near = np.abs(places[:, None] - places).max(-1) < NEAR
    standing = []
    for i, car in enumerate(cars):
        wheels = wheels_on_ball(car.shape, at[i], ball.position) if near[i, -1] else np.zeros(4, bool)
        for k in np.flatnonzero(near[i, :-1]):
            if k != i and not cars[k].is_demoed:
                wheels = wheels | wheels_on_car(car.shape, at[i], cars[k].shape, at[k])
        standing.append(wheels)
    return standing


def wheels_on_ball(shape: Shape, at: Motion, ball: Array) -> Array:
    """[4] bool: the wheels whose rays reach the ball from outside."""
    sources, rays = shape.wheel_rays(at.position, at.rotation)
    start = sources - ball
    outside, towards = (start * start).sum(1) - BALL_RADIUS**2, -(start * rays).sum(1)
    length = (rays * rays).sum(1)
    root = towards * towards - length * outside
    reached: Array = (outside > 0) & (towards > 0) & (root >= 0) & (towards - np.sqrt(np.maximum(root, 0.0)) < length)
    return reached


def wheels_on_car(shape: Shape, at: Motion, other: Shape, other_at: Motion) -> Array:
    """[4] bool: the wheels whose rays enter the box of another car."""
    sources, rays = shape.wheel_rays(at.position, at.rotation)
    start: Array = (sources - other_at.position) @ other_at.rotation - other.center
    way: Array = rays @ other_at.rotation
    way = np.where(np.abs(way) < 1e-6, 1e-6, way)
    enters = ((-np.sign(way) * other.half - start) / way).max(1)
    leaves = ((np.sign(way) * other.half - start) / way).min(1)
    reached: Array = (enters >= 0) & (enters < np.minimum(leaves, 1.0))
    return reached
