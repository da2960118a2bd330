"""What several measures ask of the game state, and the checks of their options."""
from __future__ import annotations

from math import isfinite

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.rewards.measures import dot, length, to_ball
from wavedash.rocket.state import Cars, Events, GameState

WHEEL_REACH = 200.0
"""uu from the center of a car to that of a ball that its wheels touch, at the end of the step of the touch"""
WHEEL_SIDE = -0.7
"""Cosine of the angle between a car's up axis and the way to the ball up to which the ball is on the side of its wheels"""


def touches(state: GameState, events: Events) -> Tensor:
    """[E, C] bool: the car hit the ball during the step. An empty seat does not."""
    return (events.touches > 0) & state.cars.present


def others(touch: Tensor) -> Tensor:
    """[E, C] bool: a car other than this one hit the ball, if `touch` [E, C] says who did."""
    return touch.sum(-1, keepdim=True) - touch.int() > 0


def wheels_at_ball(state: GameState) -> Tensor:
    """[E, C] bool: the ball is close to the car, on the side of its wheels."""
    way = to_ball(state)
    distance = length(way)
    return (dot(state.cars.up, way) < WHEEL_SIDE * distance) & (distance < WHEEL_REACH)


def stands(state: GameState) -> Tensor:
    """[E, C] bool: three wheels or more touch the arena. Wheels that touch the ball in the air do not count, though the game
    then says `on_ground`: that is a flip reset."""
    return state.cars.on_ground & ~wheels_at_ball(state)


def attack(cars: Cars) -> Tensor:
    """[E, C]: 1 for cars that attack toward +Y (blue), -1 for the others."""
    return torch.where(cars.team == 0, 1.0, -1.0)


def in_ticks(name: str, seconds: float) -> int:
    """Whole ticks of an option in seconds."""
    return round(at_least(name, seconds, 0.0) * TICK_RATE)


def at_least(name: str, value: float, least: float) -> float:
    """The value of an option. Raises UserError if it is too small or no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value) or value < least:
        raise UserError(f"the option {name!r} of a measure must be a number of at least {least:g}, not {value!r}")
    return value
