"""A readout is what a rank has read from its device after an iteration; those of all ranks are joined into one."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from wavedash.ppo.episodes import Episode

Number = TypeVar("Number", int, float)


class Readout(NamedTuple):
    """What was read about the rows of one rank, or of all ranks together."""

    sums: Mapping[str, float]
    """Sums and counts over the rows, by name"""
    episodes: Sequence[Episode]
    """The episodes that ended, the latest last"""
    health: Mapping[str, int]
    """The environment's counters of failures, such as restarted workers"""
    fault: str | None = None
    """A message about what the environment did that cannot be learned from"""
    shared: Mapping[str, float] = MappingProxyType({})
    """Numbers that are the same on all ranks"""


def joined(readouts: Sequence[Readout]) -> Readout:
    """Adds the sums of all ranks. A name may be missing on some ranks: environments need not report the same metrics."""
    # Ranks take turns from the latest episode backwards, so that no rank fills the window of recent episodes alone.
    from_the_latest = zip_longest(*(reversed(readout.episodes) for readout in readouts))
    episodes = [episode for each in from_the_latest for episode in each if episode is not None]
    fault = next((readout.fault for readout in readouts if readout.fault), None)
    sums, health = _added(r.sums for r in readouts), _added(r.health for r in readouts)
    return Readout(sums, episodes[::-1], health, fault, readouts[0].shared)


def _added(counts: Iterable[Mapping[str, Number]]) -> dict[str, Number]:
    total: dict[str, Number] = {}
    for each in counts:
        for name, count in each.items():
            total[name] = total[name] + count if name in total else count
    return total
