"""Keeps the best state of a run, by mean return over the recent episodes, without writing at every small improvement.

Between two writes the best candidate waits in memory: when the next write is due it is the best of all iterations since the
last one that is written, not the one that happens to be running.
"""
from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from wavedash.runs.checkpoint import Tensors
from wavedash.runs.store import CheckpointStore

FEWEST_EPISODES = 10
"""A mean return over fewer says nothing."""


class Snapshot(NamedTuple):
    """What `CheckpointStore.save` takes. Its tensors may be the learner's own, which the next iteration changes."""

    step: int
    tensors: Tensors
    state: dict[str, Any]
    metadata: dict[str, Any]

    def copied(self) -> Snapshot:
        tensors = {group: {name: tensor.detach().to("cpu", copy=True) for name, tensor in content.items()}
                   for group, content in self.tensors.items()}
        return Snapshot(self.step, tensors, copy.deepcopy(self.state), copy.deepcopy(self.metadata))


class Rank(NamedTuple):
    """Compared in this order: a mean over a full window beats any over a part of one, which a few lucky episodes can lift."""

    full_window: bool
    mean_return: float


WORST = Rank(False, -math.inf)


class Best:
    """Holds the rank to beat, and the candidate that beat it and waits for being written."""

    def __init__(self, store: CheckpointStore, window: int, gap: int) -> None:
        """`window`: episodes of a full mean; `gap`: steps between two writes, at least."""
        self.store = store
        self.waiting: Snapshot | None = None
        self._window = window
        self._gap = gap
        self._rank = WORST
        self._next_write = 0

    def start(self) -> None:
        """What an earlier process of this run wrote remains to be beaten."""
        saved = self.store.newest()
        self._rank = self._rank_of(saved.metrics) if saved else WORST

    def consider(self, metrics: Mapping[str, float], take: Callable[[], Snapshot]) -> None:
        rank = self._rank_of(metrics)
        if rank > self._rank:
            self._rank = rank
            self.waiting = take().copied()

    def due(self, steps: int) -> bool:
        return self.waiting is not None and steps >= self._next_write

    def tried(self, steps: int, written: bool) -> None:
        self._next_write = steps + self._gap
        if written:
            self.waiting = None

    def _rank_of(self, metrics: Mapping[str, float]) -> Rank:
        count, mean = metrics.get("recent/count", 0), metrics.get("recent/return", math.nan)
        if count < min(self._window, FEWEST_EPISODES) or not math.isfinite(mean):
            return WORST
        return Rank(count >= self._window, mean)
