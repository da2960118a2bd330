"""A listener is told about each iteration of the learner.

Checkpoints, console, curves and evaluation are listeners. The learner does not know that any of them exist.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wavedash.config import RunConfig
    from wavedash.ppo.learner import Learner


@dataclass(frozen=True)
class IterationReport:
    """What listeners are told about one iteration."""

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
    phase: str | None = None
    """The phase in which the iteration was made, such as `Phase2-Scoring`; None in a run without phases"""

    def with_metrics(self, more: Mapping[str, float]) -> IterationReport:
        """Returns the same report with more metrics."""
        return replace(self, metrics={**self.metrics, **more})

    @property
    def steps_per_second(self) -> float:
        return self.metrics["rollout/steps"] / max(sum(self.seconds.values()), 1e-9)


class Listener:
    """Is told about the run, in the learner's process and between iterations. Subclasses override what they need.

    In a run of several processes, the listeners given to `wavedash.train(..., listeners=...)` run in each process, because each
    has environments of its own; all are told the same metrics. State is saved by the first process and restored in all. A
    listener that writes or prints should do so only where `learner.ranks.rank` is 0.
    """

    saved_as: str = ""
    """The name under which its state is saved; if empty, the name of its class. Two that keep state need different names."""
    live: tuple[str, ...] = ()
    """Settings that `on_change` takes over while a run runs, such as `checkpoint.every`"""
    orders: tuple[str, ...] = ()
    """Words that `obey` does while a run runs (`wavedash set RUN milestone`), each without a dot and no option's name. Several
    listeners may have the same one: all of them obey."""
    health: Mapping[str, int] = MappingProxyType({})
    """Counters of failures since the start (such as failed saves), reported as `health/*` once an iteration."""

    def on_start(self, learner: Learner) -> None:
        """Is called before the first iteration of this process, in a new and in a resumed run."""

    def on_iteration(self, learner: Learner, report: IterationReport) -> Mapping[str, float] | None:
        """Is called after each iteration. It may call `learner.stop(reason)`. It may return metrics of its own, named
        `group/name`: the listeners after it see them in their report, those that write files and curves among them."""

    def between_iterations(self, learner: Learner) -> None:
        """Is called in all processes when an iteration is over for good: every listener was told of it, and whatever fails
        from now on does not take it back. This is the place to change settings of the run (`runs/changes.py`)."""

    def on_change(self, learner: Learner, then: RunConfig) -> None:
        """Is called when settings have changed while the run runs: they were `then`, and are `learner.config`. UserError: they
        cannot be taken over; the change is then refused, and this is called again to take it back."""

    def on_event(self, learner: Learner, event: str) -> None:
        """Is called in the first process when something was changed or ordered while the run runs, with one line that says
        what. Curves mark it at this step."""

    def obey(self, learner: Learner, order: str, argument: str | None) -> str:
        """Does one of its `orders`, between two iterations; `argument` is what was typed after `=`. Returns what the user is
        told, which may be nothing. UserError: it is refused, with this message. With several processes it is called in each
        that has this listener, at the same point; what the user is told comes from the first."""
        raise NotImplementedError

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        """Is called at the end, whether the run is finished or was stopped (`error` is None), or failed. Every listener is
        told, even if another one fails. A run whose phases have other environments ends and goes on in the same process."""

    def state_dict(self) -> dict[str, Any]:
        """Returns what it needs to go on in a resumed run: tensors, and numbers, strings, lists and dicts of these. It is
        called before every iteration, because an interrupted iteration is saved as it began; so it must be cheap."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from what `state_dict` returned. It is called before `on_start`, on a resume only. Tensors are on the CPU. An
        exception raised here ends the resume with a message that names this listener."""
