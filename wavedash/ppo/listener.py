"""What the learner tells about each iteration, and who listens.

Checkpoints, console, curves, evaluation: each is a listener. The learner does not know that any of them exist.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner


@dataclass(frozen=True)
class IterationReport:
    """What is known about one iteration."""

    iteration: int
    """Iterations (rollouts) finished so far, this one included."""
    steps: int
    """Agent steps so far: every active row of every step."""
    total_steps: int
    """The number of steps at which the run ends."""
    episodes: int
    """Episodes finished so far."""
    metrics: Mapping[str, float]
    """Named `group/name`: `rollout/*` this rollout, `recent/*` the last N episodes, `loss/*`, `policy/*`, `optim/*`, `env/*`
    the environment's own metrics, `health/*`. A metric with nothing to measure (no episode ended) is absent, not zero."""
    seconds: Mapping[str, float]
    """Where the time went: `env`, `inference`, `gae`, `update`, `other`; they sum to the whole iteration. The first three are
    one, `collect`, where they are one CUDA graph."""

    def with_metrics(self, more: Mapping[str, float]) -> IterationReport:
        """The same report with more metrics."""
        return replace(self, metrics={**self.metrics, **more})

    @property
    def steps_per_second(self) -> float:
        return self.metrics["rollout/steps"] / max(sum(self.seconds.values()), 1e-9)


class Listener:
    """Told about the run; overrides what it cares about. Called in the learner's process, between iterations.

    In a run of several processes, those that `wavedash.train(..., listeners=...)` is given run in each of them, because each
    has environments of its own; all are told the same metrics. State is saved by the first process and restored in all. Who
    writes or prints asks first whether `learner.ranks.rank` is 0.
    """

    saved_as: str = ""
    """The name under which its state is saved; empty: the name of its class. Two that keep state need different names."""
    health: Mapping[str, int] = MappingProxyType({})
    """Counters of trouble since the start (failed saves), reported as `health/*` once an iteration."""

    def on_start(self, learner: Learner) -> None:
        """Called before the first iteration of this process, in a new and in a resumed run."""

    def on_iteration(self, learner: Learner, report: IterationReport) -> Mapping[str, float] | None:
        """Called after each iteration. May call `learner.stop(reason)`. May return metrics of its own, named `group/name`: the
        listeners after it see them in their report, those that write files and curves among them."""

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        """Called once at the end: the run is finished or was stopped (`error` is None), or it broke. Every listener is told,
        even if one fails."""

    def state_dict(self) -> dict[str, Any]:
        """What it must know to go on in a resumed run: tensors, and numbers, strings, lists and dicts of these. Asked for
        before every iteration, because an iteration that is broken off is saved as it began; so it must be cheap."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned; called before `on_start`, on a resume only. Tensors lie on the CPU. Whatever
        is raised here ends the resume with the name of this listener."""
