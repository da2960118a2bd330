"""Task: the parts of a task, which are called together, and what they remember."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from wavedash.saved import Saved
from wavedash.tasks.direct import DirectModule
from wavedash.tasks.endings import Ending, Endings
from wavedash.tasks.lanes import Lanes
from wavedash.tasks.part import Part, Parts
from wavedash.tasks.rewards import Rewards
from wavedash.tasks.starts import Mixture, Start


class Task(DirectModule):
    """What agents see, do and are paid for, and how episodes begin and end. Every shard of environments has a task of its own,
    because parts remember. Its `state_dict` is what they remember, under the names of the configuration. `lanes`: a share of
    the environments has rewards, starts and endings of its own."""

    observation: Any
    action: Any
    rewards: Rewards
    start: Start

    def __init__(self, observation: Part, action: Part, rewards: Rewards, start: Start,
                 endings: Mapping[str, Ending] | Parts[Ending], lanes: Lanes | None = None) -> None:
        super().__init__()
        self.observation, self.action, self.rewards, self.start = observation, action, rewards, start
        self.endings = endings if isinstance(endings, Endings) else Endings(endings)
        self.lanes = Lanes() if lanes is None else lanes

    @property
    def played(self) -> list[Part | Endings]:
        """The parts that take part in episodes: all but the start, which only writes their beginnings."""
        return [self.observation, self.action, self.rewards, self.endings]

    def bind(self, state: Any, beginnings: Any) -> None:
        """Binds the parts to the environments of `state`, and the start to the store of beginnings."""
        self.to(state.device)
        self.bind_lanes(state)
        for part in self.played:
            part.bind(state)
        self.start.bind(beginnings)

    def bind_lanes(self, state: Any) -> None:
        """Binds the lanes, and tells the parts that depend on them."""
        self.lanes.bind(state)
        for part in (self.rewards, self.endings, self.start):
            if isinstance(part, (Rewards, Endings, Mixture)):
                part.follow(self.lanes)

    def lanes_changed(self) -> None:
        """Is called after environments have changed their lanes."""
        self.rewards.lanes_changed()
        self.endings.lanes_changed()

    def begin(self, state: Any, mask: Tensor) -> None:
        if self.lanes.lane is not None and not self.lanes.settled:
            self.lanes.assign(mask)
            self.lanes_changed()
        for part in self.played:
            part.begin(state, mask)

    def ended(self, state: Any, previous: Any, events: Any) -> tuple[Tensor, Tensor]:
        """[E] terminated, [E] truncated."""
        return self.endings(state, previous, events)

    @property
    def description(self) -> str:
        """A text that changes with everything that beginnings depend on: those of another description are written anew."""
        return f"{self.start.description} {self.lanes.description}" if len(self.lanes.parts) else self.start.description

    def compare(self, saved: Saved) -> Remembered:
        """Compares saved memory with the parts of this task. Raises SavedError if a saved tensor cannot be right."""
        now, then = _by_owner(self.state_dict()), _by_owner(saved.tensors)
        fits = {owner: owner in then and {name: x.shape for name, x in own.items()}
                == {name: x.shape for name, x in then[owner].items()} for owner, own in now.items()}
        kept = {name: x for owner, own in now.items() if fits[owner] for name, x in own.items()}
        for name, x in kept.items():
            saved.is_like(name, x, finite=False)  # a part may remember NaN
        return Remembered(kept, [owner for owner in now if not fits[owner]], [owner for owner in then if owner not in now])

    def restore(self, remembered: Remembered, saved: Saved, state: Any) -> None:
        """Restores the memory that fits; for parts that have none, episodes begin at `state`."""
        for name, x in remembered.kept.items():
            x.copy_(saved.tensors[name])
        everywhere = torch.ones(state.shape[0], dtype=torch.bool, device=state.device)
        for part in {id(part): part for part in map(self._part_of, remembered.fresh)}.values():
            part.begin(state, everywhere)
        if self.lanes.lane is not None:
            self.lanes.restored()
            self.lanes_changed()

    def _part_of(self, owner: str) -> Part:
        """The part that begins episodes for a module: the outermost one around it, but for those that only hold others."""
        part: Part | None = None
        module: nn.Module = self
        for name in owner.split("."):
            module = module.get_submodule(name)
            if isinstance(module, Part):
                part = module
                if not part.holds_parts:
                    break
        assert part is not None
        return part


class Remembered(NamedTuple):
    """The memory of a task's parts, compared with what was saved."""

    kept: dict[str, Tensor]
    """The tensors of this task that have a saved value"""
    fresh: list[str]
    """Parts for which nothing was saved, or tensors of another shape"""
    dropped: list[str]
    """Saved parts that this task does not have"""

    def __str__(self) -> str:
        """The differences, for a log line; empty if there are none."""
        said = [f"{what}: {', '.join(_named(parts))}" for parts, what in (
            (self.fresh, "new, with a memory that begins now"), (self.dropped, "gone, with what was remembered")) if parts]
        return "; ".join(said)


def _by_owner(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """Tensors by the module that they belong to."""
    owners: dict[str, dict[str, Tensor]] = {}
    for name, x in tensors.items():
        owners.setdefault(name.rpartition(".")[0], {})[name] = x
    return owners


def _named(owners: list[str]) -> Iterator[str]:
    """The names of modules as the configuration has them."""
    return (owner.replace(".parts.", ".").replace("/", ".") for owner in owners)
