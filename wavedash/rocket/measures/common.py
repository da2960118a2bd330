"""What several measures ask of a step, and the checks of their options."""
from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from math import isfinite

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.parts import Measure, Outcome
from wavedash.rocket.rewards.measures import but_not, dot, length, to_ball
from wavedash.rocket.state import Cars, Events, GameState

WHEEL_REACH = 200.0
"""uu from the center of a car to that of a ball that its wheels touch, at the end of the step of the touch"""
WHEEL_SIDE = -0.7
"""Cosine of the angle between a car's up axis and the way to the ball up to which the ball is on the side of its wheels"""


class Look:
    """What several measures ask of a step. Each is computed once, when it is first asked for."""

    def __init__(self, state: GameState, previous: GameState, events: Events, may_read: bool = False) -> None:
        """`may_read`: measures may read tensors on the host, and leave out work that no arena needs."""
        self.state, self.previous, self.events, self.may_read = state, previous, events, may_read
        self._above: dict[float, Tensor] = {}

    def none(self, flags: Tensor) -> bool:
        """Whether all of these are known to be false or 0, so that what depends on them need not be computed."""
        return self.may_read and not bool(flags.any())

    def outcome(self, over: Tensor, success: Tensor, ticks: Tensor | None = None) -> Outcome | None:
        """The outcome, if attempts were decided, or if that is not known."""
        return None if self.none(over) else Outcome(over, success, ticks)

    @cached_property
    def touch(self) -> Tensor:
        """[E, C] bool: the car hit the ball during the step. An empty seat does not."""
        return (self.events.touches > 0) & self.state.cars.present

    @cached_property
    def no_touch(self) -> bool:
        """Whether it is known that no car hit the ball."""
        return self.none(self.touch)

    @cached_property
    def others(self) -> Tensor:
        """[E, C] bool: a car other than this one hit the ball."""
        return self.touch.sum(-1, keepdim=True) - self.touch.int() > 0

    def above(self, height: float) -> Tensor:
        """[E, C] bool: the car's center is above this height."""
        if height not in self._above:
            self._above[height] = self.state.cars.position[..., 2] > height
        return self._above[height]

    @cached_property
    def clock(self) -> Tensor:
        """[E, 1]"""
        return self.state.clock.unsqueeze(-1)

    @cached_property
    def alive(self) -> Tensor:
        """[E, C] bool: neither an empty seat nor demolished."""
        return self.state.cars.alive

    @cached_property
    def to_ball(self) -> Tensor:
        """[E, C, 3]: vector from each car to the ball."""
        return to_ball(self.state)

    @cached_property
    def wheels_at_ball(self) -> Tensor:
        """[E, C] bool: the ball is close to the car, on the side of its wheels."""
        distance = length(self.to_ball)
        return (dot(self.state.cars.up, self.to_ball) < WHEEL_SIDE * distance) & (distance < WHEEL_REACH)

    @cached_property
    def stands(self) -> Tensor:
        """[E, C] bool: three wheels or more touch the arena. Wheels that touch the ball in the air do not count, though the
        game then says `on_ground`: that is a flip reset."""
        return but_not(self.state.cars.on_ground, self.wheels_at_ball)


class SharedMeasure(Measure):
    """A measure that shares what it asks of a step with others."""

    _read = (-1, False)
    """The version of the flags that `idle` has read last, and whether all of them were false"""

    def idle(self, look: Look, flags: Tensor) -> bool:
        """Whether it is known that none of its own `flags` is set. It reads them only if something was written to them since it
        last did: every change of a buffer in place, a restored one too, counts its version up."""
        if not look.may_read:
            return False
        if self._read[0] != flags._version:
            self._read = flags._version, look.none(flags)
        return self._read[1]

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Outcome:
        outcome = self.judge(Look(state, previous, events))
        assert outcome is not None
        return outcome

    @abstractmethod
    def judge(self, look: Look) -> Outcome | None:
        """What the step has decided. None: nothing, as `look` could tell."""


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
