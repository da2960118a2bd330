"""Endings decide when an episode ends. An ending that truncates cuts the episode off: the future still has a value. If several
endings happen in the same step, the episode is terminated if one of them terminates.

Times are counted by the environment's clock, so they do not depend on the number of ticks in a step.
"""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import Any, TypeGuard

import torch
from torch import Tensor

from wavedash.envs.errors import EnvError
from wavedash.errors import UserError
from wavedash.tasks.lanes import Lanes, instances
from wavedash.tasks.lookup import Lookup
from wavedash.tasks.numbers import Numbers
from wavedash.tasks.part import Faster, Part, Parts

LONGEST = 1_000_000
"""s of the longest time limit, so that ticks stay far from the end of int32"""


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
    """[E]: the clock when the time began"""
    limit: Tensor
    """[]: ticks that it may last"""

    def __init__(self, seconds: float = 300.0) -> None:
        if not 0.0 < seconds <= LONGEST:
            raise EnvError(f"the ending {type(self).__name__} needs seconds above 0 and up to {LONGEST:,}, not "
                           f"{seconds:g}; for no limit, leave it out")
        self.seconds = float(seconds)

    def bind(self, state: Any) -> None:
        self.tick_rate: float = state.tick_rate
        self.register_buffer("since", state.clock.clone())
        self.register_buffer("limit", torch.zeros((), dtype=self.since.dtype, device=self.since.device), persistent=False)
        self.write_settings()

    def begin(self, state: Any, mask: Tensor) -> None:
        torch.where(mask, state.clock, self.since, out=self.since)

    def restarts(self, state: Any, previous: Any, events: Any) -> Tensor | None:
        """[E] bool: where the time begins anew in the middle of an episode; None: nowhere."""
        return None

    def __call__(self, state: Any, previous: Any, events: Any) -> Tensor:
        anew = self.restarts(state, previous, events)
        if anew is not None:
            self.begin(state, anew)
        return state.clock - self.since >= self.limit

    def write_settings(self) -> None:
        self.limit.fill_(round(self.seconds * self.tick_rate))


class Endings(Parts[Ending]):
    """All endings of a task by name, and where each of them counts: in the main task, and in which lanes. One that is switched
    off remembers as usual, so that it can be switched on in the middle of an episode.

    A task with lanes has many time limits. Their memory is one tensor, so that all of them are one comparison."""

    counts: Tensor
    """[n, 1 + L] bool: in which lanes each ending counts, in the order of `order`; the first column is the main task"""
    _counting: Tensor
    """[n, E] bool, or [n, 1] without lanes: which endings count in each environment now"""
    _happened: Tensor
    """[n, E] bool: which endings happened in the last step"""
    _since: Tensor
    """[m, E]: `since` of the time limits, which are the last in the order"""
    _limits: Tensor
    """[m, 1]: `limit` of the time limits"""

    def __init__(self, endings: Mapping[str, Ending] | Parts[Ending], counting: Collection[str] | None = None,
                 lanes: Mapping[str, Collection[str] | None] | None = None) -> None:
        """`counting`: the names of endings that count in the main task, by default all. `lanes`: those that count in each lane;
        None: the same as in the main task."""
        super().__init__(endings)
        self.order = sorted(self.keys(), key=lambda name: (self[name].truncates, _is_plain_limit(self[name])))
        self.terminating = sum(not ending.truncates for ending in self.values())
        self._limited = [ending for name in self.order if _is_plain_limit(ending := self[name])]
        self._others = {name: self[name] for name in self.order[:len(self) - len(self._limited)]}
        self._faster: Faster | None = None
        self.lane: Tensor | None = None
        self.register_buffer("counts", torch.zeros(len(self), 1 + len(lanes or {}), dtype=torch.bool), persistent=False)
        self._numbers = Numbers(self.counts)
        self._bound = False
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
        """Is called before `bind` with the lanes that environments play."""
        self.lane = lanes.lane

    def bind(self, state: Any) -> None:
        """Is called once before everything else, when sizes and device are known."""
        for ending in self.values():
            ending.bind(state)
        happened = torch.zeros(len(self), state.shape[0], dtype=torch.bool, device=state.device)
        self.register_buffer("_happened", happened, persistent=False)
        counting = self.counts if self.lane is None else torch.zeros_like(happened)
        self.register_buffer("_counting", counting, persistent=False)
        self._stack_limits()
        self._bound = True
        self.lanes_changed()

    def use(self, faster: Faster) -> None:
        """Takes another way to compute some of these endings, which decides and remembers the same."""
        self._faster = faster

    def begin(self, state: Any, mask: Tensor) -> None:
        """Is called when episodes begin in the environments of `mask` [E]."""
        for ending in self._others.values():
            ending.begin(state, mask)
        if self._limited:
            torch.where(mask, state.clock, self._since, out=self._since)

    def lanes_changed(self) -> None:
        """Is called after environments have changed their lanes."""
        if self.lane is not None:
            torch.index_select(self.counts, 1, self.lane, out=self._counting)

    def set_counting(self, counting: Collection[str], lanes: Mapping[str, Collection[str] | None]) -> None:
        """Changes where endings count from the next step on, without a host sync."""
        self.counting, self.of_lanes = list(counting), dict(lanes)
        columns = [counting, *(counting if own is None else own for own in lanes.values())]
        self._numbers.write(self.counts, (name in names for name in self.order for names in columns))
        if self._bound:
            self.lanes_changed()

    def __call__(self, state: Any, previous: Any, events: Any) -> tuple[Tensor, Tensor]:
        """[E] terminated, [E] truncated."""
        others = len(self._others)
        if others:
            found = {} if self._faster is None else self._faster(state, previous, events)
            happened = [found[name] if name in found else ending(state, previous, events)
                        for name, ending in self._others.items()]
            for name, x in zip(self._others, happened, strict=True):
                if x.shape != self._happened.shape[1:] or x.dtype != torch.bool:
                    raise UserError(f"ending {name!r} returned {list(x.shape)} of {x.dtype}, not one for each environment: "
                                    f"{list(self._happened.shape[1:])} of {torch.bool}")
            torch.stack(happened, out=self._happened[:others])
        if self._limited:
            for ending in self._limited:
                anew = ending.restarts(state, previous, events)
                if anew is not None:
                    ending.begin(state, anew)
            torch.ge(state.clock - self._since, self._limits, out=self._happened[others:])
        ends = self._happened & self._counting
        return ends[:self.terminating].any(0), ends[self.terminating:].any(0)

    def _stack_limits(self) -> None:
        """Makes the memory of all time limits one tensor, of which theirs are views."""
        if not self._limited:
            return
        self.register_buffer("_since", torch.stack([ending.since for ending in self._limited]), persistent=False)
        self.register_buffer("_limits", torch.stack([ending.limit for ending in self._limited]).unsqueeze(-1), persistent=False)
        for ending, since, limit in zip(self._limited, self._since, self._limits, strict=True):
            ending.register_buffer("since", since)
            ending.register_buffer("limit", limit.squeeze(0), persistent=False)


def _is_plain_limit(ending: Ending) -> TypeGuard[TimeOut]:
    """Whether an ending is a time limit that differs from `TimeOut` in `restarts` alone."""
    kind = type(ending)
    return isinstance(ending, TimeOut) and all(getattr(kind, name) is getattr(TimeOut, name)
                                               for name in ("__call__", "bind", "begin"))
