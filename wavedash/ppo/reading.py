"""What each rank has read from its device after an iteration, and what the readings of all ranks are together."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from wavedash.ppo.episodes import Episode

Number = TypeVar("Number", int, float)


class Reading(NamedTuple):
    """What was read about the rows of one rank, or of all ranks."""

    sums: Mapping[str, float]
    """Sums and counts over the rows, by name"""
    episodes: Sequence[Episode]
    """The episodes that ended, the latest last"""
    health: Mapping[str, int]
    """The environment's counters of trouble"""
    fault: str | None = None
    """What the environment did that cannot be learned from"""
    shared: Mapping[str, float] = MappingProxyType({})
    """Numbers that are the same on all ranks"""


def joined(readings: Sequence[Reading]) -> Reading:
    """Sums are added. Not every rank need know every name: an environment may tell a metric here and not there."""
    # The latest of each rank, then the ones before: no rank fills the window of recent episodes alone.
    from_the_latest = zip_longest(*(reversed(reading.episodes) for reading in readings))
    episodes = [episode for each in from_the_latest for episode in each if episode is not None]
    fault = next((reading.fault for reading in readings if reading.fault), None)
    sums, health = _added(r.sums for r in readings), _added(r.health for r in readings)
    return Reading(sums, episodes[::-1], health, fault, readings[0].shared)


def _added(counts: Iterable[Mapping[str, Number]]) -> dict[str, Number]:
    total: dict[str, Number] = {}
    for each in counts:
        for name, count in each.items():
            total[name] = total[name] + count if name in total else count
    return total
