"""What each rank reads from its device after an iteration, and what that makes together."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple, TypeVar

from wavedash.ppo.episodes import Episode

Number = TypeVar("Number", int, float)


class Reading(NamedTuple):
    """Of the rows of one rank, or of all."""

    sums: Mapping[str, float]
    """Named sums and counts"""
    episodes: Sequence[Episode]
    """Those that ended, the latest last"""
    health: Mapping[str, int]
    """The world's counters of trouble"""
    fault: str | None = None
    """What its environment did that cannot be learned from"""


def joined(readings: Sequence[Reading]) -> Reading:
    """Sums are added. Not every rank need know every name: an environment may tell a figure of its own here and not there."""
    # The latest of each rank, then the ones before: no rank fills the window of recent episodes alone.
    from_the_latest = zip_longest(*(reversed(reading.episodes) for reading in readings))
    episodes = [episode for each in from_the_latest for episode in each if episode is not None]
    fault = next((reading.fault for reading in readings if reading.fault), None)
    return Reading(_added(r.sums for r in readings), episodes[::-1], _added(r.health for r in readings), fault)


def _added(counts: Iterable[Mapping[str, Number]]) -> dict[str, Number]:
    total: dict[str, Number] = {}
    for each in counts:
        for name, count in each.items():
            total[name] = total[name] + count if name in total else count
    return total
