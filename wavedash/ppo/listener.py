"""What the learner tells the world about each iteration, and who listens.

Checkpoints, console, curves, evaluation: each is a listener. The learner does not know that any of them exist.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner


@dataclass(frozen=True)
class IterationReport:
    """Every figure of one iteration, read from the device in one copy."""

    iteration: int
    """Iterations (rollouts) finished so far, this one included."""
    steps: int
    """Agent steps so far: every active row of every step."""
    total_steps: int
    """Where the run will end."""
    episodes: int
    """Episodes finished so far."""
    figures: Mapping[str, float]
    """Named `group/name`: `rollout/*` this rollout, `recent/*` the last N episodes, `loss/*`, `policy/*`, `optim/*`, `env/*`
    the world's own metrics, `health/*`. A figure with nothing to measure (no episode ended) is absent, not zero."""
    seconds: Mapping[str, float]
    """Where the time went: `env`, `inference`, `gae`, `update`, `other`; sums to the whole iteration. The first three are one,
    `collect`, where they are replayed from one CUDA graph."""

    @property
    def steps_per_second(self) -> float:
        return self.figures["rollout/steps"] / max(sum(self.seconds.values()), 1e-9)


class Listener:
    """Told about the run; overrides what it cares about. Called in the learner's process, between iterations."""

    health: Mapping[str, int] = MappingProxyType({})
    """Counters of trouble since the start (failed saves), reported as `health/*` once an iteration."""

    def on_start(self, learner: Learner) -> None:
        """Before the first iteration of this process (of a new or a resumed run)."""

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        """After each iteration. May call `learner.stop(reason)`."""

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        """Once, at the end: finished (`error` is None), stopped, or broken. Called for every listener, even if one fails."""
