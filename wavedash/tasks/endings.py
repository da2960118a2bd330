"""Endings decide when an episode ends. An ending that truncates cuts the episode off: the future still has a value. If several
endings happen in the same step, the episode is terminated if one of them terminates.

Times are counted by the environment's clock, so they do not depend on the number of ticks in a step.
"""
from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from wavedash.tasks.part import Part


class Ending(Part):
    """Decides when an episode ends."""

    truncates: bool = False
    """True: the episode is truncated, and the future still has a value (time ran out). False: it is terminated (a goal)"""

    @abstractmethod
    def __call__(self, state: Any, previous: Any, events: Any) -> Tensor:
        """[E] bool: the episode ends with this step."""


class TimeOut(Ending):
    """The episode has lasted `seconds` of the environment's time. Truncates. In Rocket League use 300 for whole games, 10 to 30
    for training."""

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
