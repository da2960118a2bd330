"""Endings decide when an episode ends. An ending that truncates cuts the episode off: the future still has a value. If several
endings happen in the same step, the episode is terminated if one of them terminates.

Times are counted by the environment's clock, so they do not depend on the number of ticks in a step.
"""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from wavedash.tasks.lanes import Lanes, instances
from wavedash.tasks.lookup import Lookup
from wavedash.tasks.numbers import Numbers
from wavedash.tasks.part import Part, Parts


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


class Endings(Parts[Ending]):
    """All endings of a task by name, and where each of them counts: in the main task, and in which lanes. One that is switched
    off remembers as usual, so that it can be switched on in the middle of an episode."""

    counts: Tensor
    """[n, 1 + L] bool: in which lanes each ending counts, in the order of `order`; the first column is the main task"""

    def __init__(self, endings: Mapping[str, Ending] | Parts[Ending], counting: Collection[str] | None = None,
                 lanes: Mapping[str, Collection[str] | None] | None = None) -> None:
        """`counting`: the names of endings that count in the main task, by default all. `lanes`: those that count in each lane;
        None: the same as in the main task."""
        super().__init__(endings)
        self.order = sorted(self.keys(), key=lambda name: self[name].truncates)
        self.terminating = sum(not ending.truncates for ending in self.values())
        self.lane: Tensor | None = None
        self.register_buffer("counts", torch.zeros(len(self), 1 + len(lanes or {}), dtype=torch.bool), persistent=False)
        self._numbers = Numbers(self.counts)
        self.set_counting(self.keys() if counting is None else counting, lanes or {})

    @classmethod
    def named(cls, endings: Mapping[str, Any], lookup: Lookup, lanes: Mapping[str, Any] | None = None) -> Endings:
        """Makes endings as a YAML file has them: `goal: {}`, `no_touch: {seconds: 10}`; `null` is one that is switched off."""
        def has_no_options(name: str, value: Any) -> bool:
            return not lookup.options("ending", name)  # whatever has some may get others in one place while a run runs

        found = instances(endings, lanes or {}, has_no_options)
        made = {instance: lookup.make("ending", name, value) for instance, (name, value) in found.given.items()}
        own = {lane: None if names is None else [instance for name, instance in names.items() if lanes[lane][name] is not None]
               for lane, names in found.of_lanes.items()} if lanes else {}
        return cls(made, [name for name, value in endings.items() if value is not None], own)

    @property
    def on(self) -> set[str]:
        """The names of endings that count somewhere."""
        return {*self.counting, *(name for own in self.of_lanes.values() for name in own or ())}

    def follow(self, lanes: Lanes) -> None:
        """Is called before the endings are bound, with the lanes that environments play."""
        self.lane = lanes.lane

    def set_counting(self, counting: Collection[str], lanes: Mapping[str, Collection[str] | None]) -> None:
        """Changes where endings count from the next step on, without a host sync."""
        self.counting, self.of_lanes = list(counting), dict(lanes)
        columns = [counting, *(counting if own is None else own for own in lanes.values())]
        self._numbers.write(self.counts, (name in names for name in self.order for names in columns))

    def __call__(self, state: Any, previous: Any, events: Any) -> tuple[Tensor, Tensor]:
        """[E] terminated, [E] truncated."""
        if not self.order:
            never = torch.zeros(state.shape[0], dtype=torch.bool, device=state.device)
            return never, never.clone()
        happened = torch.stack([self[name](state, previous, events) for name in self.order])  # [n, E]
        ends = happened & (self.counts if self.lane is None else self.counts[:, self.lane])
        return ends[:self.terminating].any(0), ends[self.terminating:].any(0)
