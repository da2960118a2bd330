"""Rules that every possible state of the game keeps: where bodies may be, how fast, how rotated. They are checked for states
that come from outside: frames of files, and starts that a user wrote.
"""
from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import torch
from torch import Tensor

from wavedash.rocket.constants import (
    BACK_NET_Y,
    BACK_WALL_Y,
    BALL_MAX_SPEED,
    BALL_RADIUS,
    BOOST_MAX,
    CAR_MAX_SPEED,
    CEILING_Z,
    CORNER_LENGTH,
    GOAL_HALF_WIDTH,
    GOAL_HEIGHT,
    SIDE_WALL_X,
)
from wavedash.rocket.state import GameState

BALL_INSIDE = BALL_RADIUS / 2
"""How far within the walls the center of the ball must be, uu. A bouncing ball sinks in by some uu, never by half its radius"""
BOUNDS = (f"|x| up to {SIDE_WALL_X:g}, |y| up to {BACK_WALL_Y:g} ({BACK_NET_Y:g} inside a goal), z from 0 to {CEILING_Z:g}; "
          f"the center of the ball {BALL_INSIDE:.0f} uu within that")
ROTATION = "is no rotation (columns: forward, right, up)"
SLACK = 1.01
"""Factor by which rounding may exceed the greatest speeds"""


class Rule(NamedTuple):
    """A rule about one field of a state, and where the state breaks it."""

    field: str
    broken: Tensor
    """[E], or [E, C] for fields of cars"""
    says: str
    """What is wrong with a value that breaks it"""
    bounds: str = ""
    """What would be right, where `says` does not tell"""


def rules(state: GameState) -> list[Rule]:
    """All rules, checked for all arenas of the state on its device, without a host sync. Empty seats may hold anything."""
    ball, cars, here = state.ball, state.cars, state.cars.present
    ball_speed, car_speed = ball.velocity.norm(dim=-1), cars.velocity.norm(dim=-1)
    return [
        Rule("cars.team", here & (cars.team != 0) & (cars.team != 1), "must be 0 (blue) or 1 (orange)"),
        Rule("ball.position", ~_inside(ball.position, BALL_INSIDE), "is outside the arena", BOUNDS),
        Rule("cars.position", here & ~_inside(cars.position, 0.0), "is outside the arena", BOUNDS),
        Rule("ball.velocity", ~(ball_speed <= BALL_MAX_SPEED * SLACK), f"is faster than {BALL_MAX_SPEED:g} uu/s"),
        Rule("cars.velocity", here & ~(car_speed <= CAR_MAX_SPEED * SLACK), f"is faster than {CAR_MAX_SPEED:g} uu/s"),
        Rule("ball.angular_velocity", ~ball.angular_velocity.isfinite().all(-1), "is not a number"),
        Rule("cars.angular_velocity", here & ~cars.angular_velocity.isfinite().all(-1), "is not a number"),
        Rule("ball.rotation", ~_is_rotation(ball.rotation), ROTATION),
        Rule("cars.rotation", here & ~_is_rotation(cars.rotation), ROTATION),
        Rule("cars.boost", here & ~((cars.boost >= 0) & (cars.boost <= BOOST_MAX)), "must be 0 to 100"),
    ]


def _inside(position: Tensor, margin: float) -> Tensor:
    """Whether positions are within walls and corners, or within a goal. The curves at the foot of walls are ignored."""
    x, y, z = position.unbind(-1)
    x, y = x.abs(), y.abs()
    corner = SIDE_WALL_X + BACK_WALL_Y - CORNER_LENGTH - sqrt(2.0) * margin
    field = (x <= SIDE_WALL_X - margin) & (y <= BACK_WALL_Y - margin) & (x + y <= corner)
    goal = (x <= GOAL_HALF_WIDTH - margin) & (y <= BACK_NET_Y - margin) & (z <= GOAL_HEIGHT - margin)
    return (field | goal) & (z >= margin) & (z <= CEILING_Z - margin)


def _is_rotation(matrix: Tensor) -> Tensor:
    """Whether matrices are orthonormal and right-handed: a mirrored frame is no rotation."""
    forward, right, up = matrix.unbind(-1)
    lengths = (matrix.square().sum(-2) - 1.0).abs().amax(-1)
    third = (torch.linalg.cross(forward, right) - up).abs().amax(-1)  # right-handed and at right angles to both
    angle = (forward * right).sum(-1).abs()
    return (lengths < 0.01) & (third < 0.01) & (angle < 0.01)
