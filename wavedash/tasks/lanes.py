"""Lanes: a share of the environments has a task of its own beside the main one, with its own starts, rewards and endings.

Every lane has a block of the environments, the first ones, with room for the largest share that it may get; how many of them
play it now follows from its share. An environment changes its lane only where an episode begins. Shares, weights and where
endings count are tensors, so they may change while a run runs, and captured CUDA graphs see it.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.tasks.part import Part, Parts

MAIN = 0
"""The number of the main task; lanes are counted from 1"""


class Lane(Part):
    """One lane. It has its name in what is saved, so that a run can be resumed with other lanes beside it."""

    plays: Tensor
    """[E] bool: the current episode is played in this lane"""

    def __init__(self, share: float, most: float) -> None:
        self.share, self.most = share, most

    def begin(self, state: Any, mask: Tensor) -> None:
        """Is called on resume if nothing was saved about this lane: episodes that go on are not played in it."""
        self.plays.masked_fill_(mask, False)


class Lanes(Part):
    """The lanes of a task: which environments play which. Without lanes it holds nothing.

    Of E environments a lane has about `most * E`, but at least one if `most` is above 0. Of these it plays in `share / most`,
    at least in one if `share` is above 0."""

    holds_parts = True
    lane: Tensor | None
    """[E]: the lane of the current episodes, MAIN or a number from 1 on; None: there are no lanes"""
    following: Tensor | None
    """[E]: the lane of the episodes that begin next"""
    _plays: Tensor
    """[L, E] bool: which environments play each lane in their current episode"""
    _target: Tensor
    """[L, E] bool: which shall play it in their next"""

    def __init__(self, lanes: Mapping[str, Lane] | None = None) -> None:
        self.parts = Parts(lanes or {})
        self.blocks: dict[str, slice] = {}
        """The environments that are set aside for each lane"""
        self.playing: dict[str, int] = {}
        """How many of them shall play it in their next episodes: the first of its block"""
        self.settled = False
        """Whether it is known on the host that no environment will change its lane, see `settle`"""
        for name in ("lane", "following"):
            self.register_buffer(name, None, persistent=False)

    @property
    def names(self) -> list[str]:
        return list(self.parts.keys())

    @property
    def taken(self) -> int:
        """The number of environments that are set aside."""
        return max((block.stop for block in self.blocks.values()), default=0)

    def bind(self, state: Any) -> None:
        if not len(self.parts):
            return
        count, device = len(self.parts), state.device
        self.set_aside(state.shape[0])
        self.numbers = torch.arange(1, count + 1, device=device).unsqueeze(-1)  # [L, 1]
        for name in ("_plays", "_target"):  # [L, E]
            self.register_buffer(name, torch.zeros(count, state.shape[0], dtype=torch.bool, device=device), persistent=False)
        for name in ("lane", "following"):
            self.register_buffer(name, torch.zeros(state.shape[0], dtype=torch.int64, device=device), persistent=False)
        for part, plays in zip(self.parts.values(), self._plays.unbind(0), strict=True):
            part.register_buffer("plays", plays)
        self.write_settings()

    def settle(self) -> None:
        """Reads on the host whether all environments play what they shall: then `assign` has nothing to do until a share
        changes. This is a host sync, so it is not for steps on a GPU."""
        self.settled = self.settled or (self.lane is not None and torch.equal(self._plays, self._target))

    def assign(self, mask: Tensor) -> None:
        """Episodes begin in the environments of `mask` [E]: these take over the lanes that they shall play."""
        torch.where(mask, self._target, self._plays, out=self._plays)
        self.restored()

    def restored(self) -> None:
        """Is called when the memory of lanes was written."""
        assert self.lane is not None
        self.settled = False
        torch.sum(self._plays * self.numbers, 0, out=self.lane)

    def set_shares(self, shares: Mapping[str, float]) -> None:
        """Changes shares for the episodes to come, without a host sync."""
        for name, share in shares.items():
            if not 0.0 <= share <= self.parts[name].most:
                raise UserError(f"lane {name!r} has room for a share of the environments from 0 to {self.parts[name].most:g}, "
                                f"not {share:g}: stop the run and resume it with most={share:g}")
        changed = {name: share for name, share in shares.items() if share != self.parts[name].share}
        for name, share in changed.items():
            self.parts[name].share = share
        if changed:
            self.write_settings()

    def write_settings(self) -> None:
        for target, (name, lane) in zip(self._target, self.parts.items(), strict=True):
            block = self.blocks[name]
            size = block.stop - block.start
            playing = min(size, max(1, round(size * lane.share / lane.most))) if lane.share > 0.0 else 0
            self.playing[name] = playing
            target.zero_()
            target[block.start:block.start + playing].fill_(True)
        assert self.following is not None
        self.settled = False
        torch.sum(self._target * self.numbers, 0, out=self.following)

    def shall_play(self, name: str | None) -> list[slice]:
        """The environments that shall play a lane in their next episodes; None: the main task."""
        if name is not None:
            begin = self.blocks[name].start
            return [slice(begin, begin + self.playing[name])] if self.playing[name] else []
        ends = [0, *(block.start + self.playing[lane] for lane, block in self.blocks.items())]
        begins = [*(block.start for block in self.blocks.values()), self._environments]
        return [slice(end, begin) for end, begin in zip(ends, begins, strict=True) if end < begin]

    @property
    def description(self) -> str:
        """A text that changes with the environments that play each lane: it decides which beginnings an environment needs. A
        ramp of a share changes it only where that comes to another environment."""
        return repr([(name, block.start, self.playing[name]) for name, block in self.blocks.items()])

    def set_aside(self, environments: int) -> None:
        """Decides which of so many environments each lane may have. UserError: they are too few."""
        blocks: dict[str, slice] = {}
        end, whole = 0, 0.0
        for name, lane in self.parts.items():
            whole += lane.most  # ends are rounded, not sizes: so lanes that fit together are not rounded up to too many
            begin, end = end, max(end + (lane.most > 0.0), round(whole * environments))
            blocks[name] = slice(begin, end)
        if end > environments:
            raise UserError(f"the lanes {', '.join(self.parts.keys())} need {end} environments in every group of them, but a "
                            f"group has {environments}: raise env.count, set env.groups=1, or lower the lanes' shares")
        self.blocks, self._environments = blocks, environments


class Instances(NamedTuple):
    """The parts of the main task and of lanes. Parts that are the same are one instance."""

    given: dict[str, tuple[str, Any]]
    """The name and the value in the configuration by the name of the instance, those of the main task first. A part that only a
    lane has is `<lane>.<name>`."""
    of_lanes: dict[str, dict[str, str] | None]
    """By lane: the name of the instance by the name in the configuration; None: the lane has all parts of the main task"""


def instances(main: Mapping[str, Any], lanes: Mapping[str, Mapping[str, Any] | None],
              may_share: Callable[[str, Any], bool] = lambda name, value: True) -> Instances:
    """Decides which parts are one instance: those of the same name and options. Weights are no options. `may_share(name,
    value)`: false for parts with settings that may become different while a run runs."""
    given = {name: (name, value) for name, value in main.items()}
    of_lanes: dict[str, dict[str, str] | None] = {}
    for lane, parts in lanes.items():
        mine: dict[str, str] = {}
        for name, value in (parts or {}).items():
            same = [instance for instance, (other, theirs) in given.items()
                    if other == name and options(theirs) == options(value) and may_share(name, value)]
            mine[name] = same[0] if same else f"{lane}.{name}"
            given.setdefault(mine[name], (name, value))
        of_lanes[lane] = None if parts is None else mine
    return Instances(given, of_lanes)


def options(value: Any) -> dict[str, Any]:
    """The options of a part that the configuration has as a weight, a mapping with its weight, or null."""
    return {key: x for key, x in value.items() if key != "weight"} if isinstance(value, Mapping) else {}
