"""`Best` keeps the best state of a run, by mean return over recent episodes, by rating or by the loss on held-out
demonstrations, without writing at every small improvement.

Between two writes the best candidate stays in memory: the next write takes the best of all iterations since the last one, not
the current one.
"""
from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from wavedash.runs.checkpoint import Tensors
from wavedash.runs.store import CheckpointStore

RATED_SIZE = "rating/size"
"""The metric of the team size in which a rating was played: ratings of different sizes cannot be compared"""
FEWEST_EPISODES = 10
"""A mean return over fewer episodes says nothing."""


class CheckpointContent(NamedTuple):
    """The arguments of `CheckpointStore.save`. Tensors may be the learner's own, which the next iteration changes."""

    step: int
    tensors: Tensors
    state: dict[str, Any]
    metadata: dict[str, Any]

    def copied(self) -> CheckpointContent:
        tensors = {file: {name: tensor.detach().to("cpu", copy=True) for name, tensor in content.items()}
                   for file, content in self.tensors.items()}
        return CheckpointContent(self.step, tensors, copy.deepcopy(self.state), copy.deepcopy(self.metadata))


class Rank(NamedTuple):
    """Ranks are compared field by field: a mean over a full window beats any over fewer episodes, which may just be lucky."""

    full_window: bool
    value: float
    """The mean return, the lower end of the rating's interval, or the negative loss"""


WORST = Rank(False, -math.inf)


class Best:
    """Holds the rank to beat, and the candidate that beat it until it is written."""

    def __init__(self, store: CheckpointStore, window: int, gap: int,
                 by: Literal["return", "rating", "newest", "held_out"] = "return") -> None:
        """`window` is the number of episodes of a full mean, `gap` the least number of steps between two writes; `by` says what
        a state is judged by. Only iterations that were rated have a rating: between them nothing is considered. With `newest`
        nothing ever is."""
        self.store = store
        self._by = by
        self.pending: CheckpointContent | None = None
        self._window = window
        self.gap = gap
        self._rank = WORST
        self._size: float | None = None
        """The team size of the rating to beat; None: not known"""
        self._next_write = 0

    def start(self) -> None:
        """Takes over the rank of the best checkpoint that an earlier process of this run has written."""
        saved = self.store.newest()
        self._rank = self._rank_of(saved.metrics) if saved else WORST
        self._size = saved.metrics.get(RATED_SIZE) if saved else None

    def consider(self, metrics: Mapping[str, float], content: Callable[[], CheckpointContent]) -> None:
        rank, size = self._rank_of(metrics), metrics.get(RATED_SIZE)
        other_size = self._by == "rating" and None not in (size, self._size) and size != self._size
        if rank > (WORST if other_size else self._rank):
            self._rank, self._size = rank, size
            self.pending = content().copied()

    def due(self, steps: int) -> bool:
        return self.pending is not None and steps >= self._next_write

    def record_attempt(self, steps: int, written: bool) -> None:
        self._next_write = steps + self.gap
        if written:
            self.pending = None

    def _rank_of(self, metrics: Mapping[str, float]) -> Rank:
        if self._by == "newest":
            return WORST
        if self._by == "held_out":
            loss = metrics.get("imitate/held_out_loss", math.nan)
            return Rank(True, -loss) if math.isfinite(loss) else WORST
        if self._by == "rating":
            low = metrics.get("rating/low", math.nan)
            return Rank(True, low) if math.isfinite(low) else WORST
        count, mean = metrics.get("recent/count", 0), metrics.get("recent/return", math.nan)
        if count < min(self._window, FEWEST_EPISODES) or not math.isfinite(mean):
            return WORST
        return Rank(count >= self._window, mean)
