"""Starts write the beginnings of episodes. A mixture draws one of several starts, each with its weight."""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wavedash.envs.errors import EnvError
from wavedash.errors import UserError
from wavedash.tasks.lanes import Lanes, instances
from wavedash.tasks.lookup import Lookup, snake_case
from wavedash.tasks.numbers import Numbers
from wavedash.tasks.part import Part, Parts


class Start(Part):
    """Writes beginnings of episodes. It is bound to a store with several beginnings for every environment; `begin` is not
    called. If only some environments may draw it, such as those of a lane, it writes a state of their beginnings
    alone, unless it has buffers as long as the store."""

    @abstractmethod
    def write(self, state: Any, generator: torch.Generator) -> None:
        """Writes beginnings for all environments of `state`, which holds the environment's default beginning (in Rocket League
        a kick-off: ball in the center, cars on their spots with 33 boost, all pads there). Only those of environments that need
        one are used."""

    @property
    def description(self) -> str:
        """A text that changes with its settings: beginnings that were written under another description are written anew."""
        return self.origin


class Mixture(Start):
    """Draws one of several starts for every environment: `Mixture([(Kickoff(), 0.5), (Shot(), 0.3), (Save(), 0.2)])`. Weights
    need not sum to one. Environments that play a lane draw by the weights of that lane."""

    below: Tensor
    """[1 + L, K]: the weights of each start and those before it, in the main task and in each lane"""
    drawn: Tensor
    """[E]: which start was written last"""
    lane: Tensor | None = None
    """[e]: the lane of the next episode of each environment, if there are lanes; the store has beginnings for environment i at
    i, i + e, i + 2 e, ..."""

    def __init__(self, starts: Sequence[tuple[Start, float]], names: Sequence[str] | None = None,
                 lanes: Mapping[str, Mapping[str, float]] | None = None) -> None:
        """`names`: as the configuration has them. Without them the starts have the names of their classes, or numbers if those
        are not unique. `lanes`: the weights of the starts in each lane, by name; those that are not named have none."""
        self.starts = [start for start, _ in starts]
        classes = [snake_case(type(start).__name__) for start in self.starts]
        self.names = list(names or (classes if len(set(classes)) == len(classes) else map(str, range(len(classes)))))
        self.shares = dict(zip(self.names, (float(weight) for _, weight in starts), strict=True))
        """Weights in the main task by name; `set_weights` changes them"""
        self.lanes = {lane: {name: float(own.get(name, 0.0)) for name in self.names} for lane, own in (lanes or {}).items()}
        """Weights in lanes by name"""
        for shares in (self.shares, *self.lanes.values()):
            self._check(shares)
        self.parts = Parts(dict(zip(self.names, self.starts, strict=True)))
        self.register_buffer("below", torch.zeros(1 + len(self.lanes), len(self.names)), persistent=False)
        self._numbers = Numbers(self.below)
        self._write_weights()

    @classmethod
    def named(cls, starts: Mapping[str, Any], lookup: Lookup, lanes: Mapping[str, Mapping[str, Any]] | None = None) -> Mixture:
        """Makes starts as a YAML file has them: `kickoff: 0.5`, `random: {weight: 0.5, ball_in_air: 0.2}`,
        `my_module:MyStart: 1`. `lanes`: those of each lane."""
        found = instances(starts, lanes or {})
        made = [_read(name, value, lookup) for name, value in found.given.values()]
        own = {lane: {instance: _read(name, lanes[lane][name], lookup)[1] for name, instance in (names or {}).items()}
               for lane, names in found.of_lanes.items()} if lanes else {}
        return cls([(start, weight if instance in starts else 0.0)
                    for instance, (start, weight) in zip(found.given, made, strict=True)], list(found.given), own)

    def follow(self, lanes: Lanes) -> None:
        """Is called before `bind` with the lanes that environments play."""
        self.lane, self._shall_play = lanes.following, lanes.shall_play

    def bind(self, state: Any) -> None:
        super().bind(state)
        self.register_buffer("drawn", torch.zeros(state.shape[0], dtype=torch.int64, device=state.device))
        for start in self.starts:
            start.bind(state)

    def write(self, state: Any, generator: torch.Generator) -> None:
        if len(self.starts) == 1:
            return self.starts[0].write(state, generator)
        if self.lane is None:  # there are no lanes, or it was taken from a task that has them
            below = self.below[:1]
        else:
            below = self.below[self.lane.repeat(len(self.drawn) // len(self.lane))]  # [E, K]
        ticket = torch.rand(len(self.drawn), 1, generator=generator, device=below.device) * below[:, -1:]
        self.drawn.copy_((ticket >= below[:, :-1]).sum(-1))
        default = state.clone()
        for i, (name, start) in enumerate(self.parts.items()):
            places = self._places(name)
            if places is not None and not len(places):
                continue
            written = default.clone() if places is None else default.picked(places)
            start.write(written, generator)
            if places is None:
                state.copy_(written, self.drawn == i)
            else:
                state.put_(places, written, self.drawn[places] == i)
        return None

    def set_weights(self, weights: Mapping[str, float], lane: str | None = None) -> None:
        """Changes weights for the episodes to come, without a host sync; starts that are not named keep theirs. `lane`: those
        of a lane, else of the main task."""
        known = self.shares if lane is None else self.lanes[lane]
        for name in weights:
            if name not in known:
                raise UserError(f"no start {name!r} to give a weight: this task has {', '.join(self.names)}. To add one later, "
                                "name it among the starts with weight 0")
        shares = known | {name: float(weight) for name, weight in weights.items()}
        self._check(shares)
        known.update(shares)
        self._write_weights()

    def take_over(self, wanted: Mixture) -> None:
        """Takes over all weights of a mixture of starts with the same names, for the episodes to come, without a host sync."""
        self.shares = {name: wanted.shares[name] for name in self.names}
        self.lanes = {lane: {name: wanted.lanes[lane][name] for name in self.names} for lane in self.lanes}
        self._write_weights()

    def writer(self, number: int) -> Start:
        """The start that wrote the beginning with this number."""
        return self.starts[min(int(self.drawn[number]), len(self.starts) - 1)]

    @property
    def description(self) -> str:
        own = repr([(self.shares[name], start.description) for name, start in self.parts.items()])
        return f"{own} {self.lanes}" if self.lanes else own

    def _places(self, name: str) -> Tensor | None:
        """The places in the store of the environments that may draw a start: those that shall play the main task or a lane in
        which it has a weight. None: all environments. This follows from settings alone, so the random stream is the same after
        a resume. For the others it is not written: a curriculum has many starts that it does not use yet, and those of a lane
        are for few environments."""
        store, device = len(self.drawn), self.drawn.device
        if self.lane is None:
            return None if self.shares[name] > 0.0 else self.drawn[:0]
        if any(len(x) == store for x in self.parts[name].buffers() if x.dim()):
            return None  # it remembers something about every place of the store
        tasks = [lane for lane, shares in ((None, self.shares), *self.lanes.items()) if shares[name] > 0.0]
        ranges = [part for lane in tasks for part in self._shall_play(lane)]
        environments = len(self.lane)
        if sum(part.stop - part.start for part in ranges) == environments:
            return None
        first = torch.cat([self.drawn[:0], *(torch.arange(part.start, part.stop, device=device) for part in ranges)])
        return (torch.arange(0, store, environments, device=device).unsqueeze(-1) + first).flatten()

    def _write_weights(self) -> None:
        """Writes `below`. It is summed on the host: a GPU sums in another order, by which a start with weight 0 might get a
        chance by rounding."""
        weights = np.array([list(shares.values()) for shares in (self.shares, *self.lanes.values())], np.float32)
        below = weights.cumsum(-1, dtype=np.float64).astype(np.float32)  # as torch sums on a CPU
        self._numbers.write(self.below, below.flatten().tolist())

    @staticmethod
    def _check(shares: Mapping[str, float]) -> None:
        weights = list(shares.values())
        if not weights or not all(0.0 <= weight < inf for weight in weights) or not (sum(weights) > 0.0 or len(weights) == 1):
            raise UserError(f"a mixture of starts needs weights of 0 or more, one of them above 0; got {weights}")


def _read(name: str, value: Any, lookup: Lookup) -> tuple[Start, float]:
    options = dict(value) if isinstance(value, Mapping) else {"weight": value}
    weight = options.pop("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < inf:
        raise EnvError(f"start {name!r} needs a weight of 0 or more, not {weight!r}")
    return lookup.make("start", name, options), float(weight)
