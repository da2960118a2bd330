"""Endings: when an episode ends. An ending that truncates cuts the episode off: what comes after has still a value. Where
several happen in the same step, the episode counts as terminated if one of those that terminate is among them.

Times are counted by the environment's clock, so they hold whatever the number of ticks in a step.
"""
from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from wavedash.tasks.part import Part


class Ending(Part):
    """When an episode ends."""

    truncates: bool = False
    """True: the episode is cut off, and the future has still a value (time ran out). False: it is over (a goal)."""

    @abstractmethod
    def __call__(self, state: Any, previous: Any, events: Any) -> Tensor:
        """[E] bool."""


class TimeOut(Ending):
    """The episode lasted `seconds` of the environment's time. Truncates. In Rocket League 300 for whole games, 10 to 30 for
    training."""

    truncates = True
    settings = ("seconds",)
    since: Tensor
    """[E]: the clock when the episode began"""
    limit: Tensor
    """[]: ticks that an episode may last"""

    def __init__(self, seconds: float = 300.0) -> None:
        self.seconds = float(seconds)

    def bind(self, state: Any) -> None:
        self.tick_rate: float = state.tick_rate
        self.register_buffer("since", state.clock.clone())
        self.register_buffer("limit", torch.zeros((), dtype=self.since.dtype, device=self.since.device), persistent=False)
        self.write_settings()

    def begin(self, state: Any, mask: Tensor) -> None:
        self.since.copy_(torch.where(mask, state.clock, self.since))

    def __call__(self, state: Any, previous: Any, events: Any) -> Tensor:
        return state.clock - self.since >= self.limit

    def write_settings(self) -> None:
        self.limit.fill_(round(self.seconds * self.tick_rate))
