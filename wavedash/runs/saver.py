"""The saver is the listener that writes checkpoints: regular ones, evenly spaced ones, milestones, the best one, the last and
the final one.

A failed save never ends a run: it is logged, counted in `health`, and tried again a tenth of an interval later. Only if the
last state of a run that ends without an error cannot be saved does the run fail: `failure` says why.
"""
from __future__ import annotations

import functools
import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from wavedash.config import CheckpointConfig, MilestonesConfig, RunConfig
from wavedash.errors import UserError
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.runs.best import Best, CheckpointContent
from wavedash.runs.checkpoint import CheckpointError, Tensors
from wavedash.runs.folder import RunFolder
from wavedash.runs.interrupt import uninterrupted
from wavedash.runs.milestones import MilestoneStore, check_label
from wavedash.runs.store import CheckpointStore

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)

NAMED_BY = 10_000
"""A milestone that a user orders is named by its steps with two decimals (`40.13M`); before the first million by all of them"""


@dataclass
class PeriodicSave:
    """Is due whenever the steps have passed a multiple of `every`; after a failure, a tenth of that later."""

    store: CheckpointStore
    every: int
    saved: int = 0
    not_before: int = 0
    failed: bool = False
    """Whether the last attempt failed: what was due then is still to be written"""

    def due(self, steps: int) -> bool:
        return steps // self.every > self.saved // self.every and steps >= self.not_before

    def record_attempt(self, steps: int, written: bool) -> None:
        self.failed = not written
        if written:
            self.saved = steps
        else:
            self.not_before = steps + self.every // 10


class Saver(Listener):
    """Saves into the folder of one run, whose lock this process holds."""

    saved_as = "checkpoints"
    live = ("checkpoint.every", "checkpoint.keep")
    orders = ("save", "milestone")

    def __init__(self, run: RunFolder, config: CheckpointConfig, milestones: MilestonesConfig | None = None,
                 best_by: Literal["return", "rating", "newest", "held_out"] | None = None) -> None:
        """`best_by`: what `best` is chosen by; None: what `config` says."""
        self.health: dict[str, int] = {"failed_saves": 0}
        self._run = run
        self._checkpoints = PeriodicSave(run.store("checkpoints", config.keep), config.every)
        self._regular = [self._checkpoints]
        if config.spaced_every is not None:
            self._regular.append(PeriodicSave(run.store("spaced"), config.spaced_every))
        self._named = run.milestones
        self._milestones: PeriodicSave | None = None
        self._last_milestone: tuple[int, Path] | None = None
        if milestones is not None:
            self._named.every = milestones.every
            self._milestones = PeriodicSave(self._named, milestones.every)
            # It comes first: after a kill between it and a regular checkpoint the run repeats the iteration. In the other order
            # the run would go on behind a milestone that is missing.
            self._regular.insert(0, self._milestones)
        self._missing_since: int | None = None
        self._rating: dict[str, float] = {}
        self._best = Best(run.store("best", keep=1), config.best_window, config.every // 10, best_by or config.best_by)
        self._final = run.store("final", keep=1)
        self.failure: Exception | None = None
        """Why the last state of the run was not saved"""
        self._metrics: Mapping[str, float] = {}
        self._started = False

    @property
    def saved_step(self) -> int:
        """The step from which a resumed run would go on."""
        return self._checkpoints.saved

    def on_start(self, learner: Learner) -> None:
        for store in (self._best.store, self._final, self._named, *(regular.store for regular in self._regular)):
            store.sweep()
        for regular in self._regular:
            regular.saved = learner.steps
        self._start_milestones(learner.steps)
        self._best.start()
        self._started = True

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        self._metrics, self._named.phase = report.metrics, learner.phase
        self._remember_rating(report)
        content = functools.cache(lambda: self._content(learner))
        with uninterrupted():
            for regular in self._regular:
                if regular.due(report.steps):
                    regular.failed = False  # what is saved must not say that it is missing
                    regular.record_attempt(report.steps, self._try_save(regular.store, content()))
                    if regular.failed:
                        content.cache_clear()  # the next one says so
            self._best.consider(report.metrics, content)
            if self._best.due(report.steps):
                self._write_best(report.steps)

    def save_now(self, learner: Learner) -> None:
        """Writes a regular checkpoint of this step, unless there is one. UserError: that failed, and is counted."""
        if self._checkpoints.saved < learner.steps or self._checkpoints.store.latest() is None:
            self.save_again(learner)

    def save_again(self, learner: Learner) -> None:
        """Writes a regular checkpoint of this step in the place of the one that there may be: a listener has another state now.
        UserError: that failed, and is counted."""
        with uninterrupted(), self._counted():
            self._save(self._checkpoints.store, self._content(learner))
            self._checkpoints.record_attempt(learner.steps, True)

    def obey(self, learner: Learner, order: str, argument: str | None) -> str:
        if order == "milestone":
            path = self.keep_milestone(learner, argument)
            return f"kept step {learner.steps:,} as {path}"
        if argument is not None:
            raise UserError("save takes no argument: wavedash set RUN save")
        self.save_now(learner)
        return f"saved at step {learner.steps:,}"

    def on_change(self, learner: Learner, then: RunConfig) -> None:
        config = learner.config.checkpoint
        self._checkpoints.every, self._checkpoints.store.keep = config.every, config.keep
        self._best.gap = config.every // 10

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        if not self._started:
            return
        with uninterrupted():
            try:
                self._save_missing_milestone(learner)
                self._save_last(learner, error)
            except Exception as failure:  # after a CUDA error the state cannot be read; the user sees the first error
                self._count_failure(failure)
                self.failure = failure
            if self._best.pending:
                self._write_best(learner.steps)
            if self.failure is not None and error is None:
                raise self.failure

    def _save_last(self, learner: Learner, error: BaseException | None) -> None:
        """Saves the last state; after an error that is the state at the beginning of the interrupted iteration. A run that was
        stopped before its first step gets a checkpoint too, so that it can be resumed; one that could not begin gets none."""
        finished = error is None and learner.steps >= learner.total_steps
        begun = learner.steps > 0 or error is None or isinstance(error, KeyboardInterrupt)
        unsaved = begun and (learner.steps > self._checkpoints.saved or self._checkpoints.store.latest() is None)
        if not (finished or unsaved):
            return
        content = self._content(learner)
        if unsaved:
            self._save(self._checkpoints.store, content)
            self._checkpoints.saved = learner.steps
        if finished:
            self._save(self._final, content._replace(tensors={**content.tensors, **_actor_and_critic(content.tensors)}))

    def _content(self, learner: Learner) -> CheckpointContent:
        tensors, state = learner.state()
        metadata: dict[str, Any] = {"iteration": learner.iteration, "metrics": dict(self._metrics)}
        if self._rating:
            metadata["rating"] = dict(self._rating)
        return CheckpointContent(learner.steps, tensors, state, metadata)

    # --- milestones --------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The last rating, and whether a milestone could not be written yet."""
        state: dict[str, Any] = {"rating": dict(self._rating)} if self._rating else {}
        if self._milestones is not None and self._milestones.failed:
            state["missing_since"] = self._milestones.saved
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._rating = {name: float(value) for name, value in state.get("rating", {}).items()}
        self._missing_since = None if "missing_since" not in state else int(state["missing_since"])

    def _start_milestones(self, steps: int) -> None:
        """A run that was killed repeats the iterations since its newest checkpoint; milestones that were saved after that one
        are there already. A run that goes on from any other checkpoint makes versions of its own."""
        if self._milestones is None:
            return
        newest = self._checkpoints.store.latest()
        self._named.since = newest.manifest.saved_at if newest is not None and newest.step == steps else None
        if self._missing_since is not None:
            self._milestones.saved, self._milestones.failed = min(self._missing_since, steps), True

    def keep_milestone(self, learner: Learner, label: str | None = None) -> Path:
        """Writes a milestone of this step, by order of a user, and returns its folder. Without a label, one that this process
        has written of this step already is enough. UserError: the label cannot name a folder, or the milestone cannot be
        written."""
        check_label(label)
        if label is None and self._last_milestone is not None and self._last_milestone[0] == learner.steps:
            return self._last_milestone[1]
        self._named.phase = learner.phase
        # The league has just taken this version in. A run that is killed after this must go on with that.
        self.save_again(learner)
        every = NAMED_BY if learner.steps >= 100 * NAMED_BY else 1
        with uninterrupted(), self._counted(), self._named.ordered(every, label):
            return self._save(self._named, self._content(learner))

    def _save_missing_milestone(self, learner: Learner) -> None:
        """Tries once more at the end what could not be written before."""
        if self._milestones is not None and self._milestones.failed:
            self._milestones.failed = False
            self._milestones.record_attempt(learner.steps, self._try_save(self._milestones.store, self._content(learner)))

    def _remember_rating(self, report: IterationReport) -> None:
        """Most iterations are not rated: milestones say what the last rating was, and at which step."""
        if math.isfinite(report.metrics.get("rating/elo", math.nan)):
            known = {name: report.metrics.get(f"rating/{name}", math.nan) for name in ("elo", "low", "high")}
            self._rating = {**{name: x for name, x in known.items() if math.isfinite(x)}, "steps": report.steps}

    # -----------------------------------------------------------------------------------------------------------------

    def _write_best(self, steps: int) -> None:
        assert self._best.pending is not None
        self._best.record_attempt(steps, self._try_save(self._best.store, self._best.pending))

    def _try_save(self, store: CheckpointStore, content: CheckpointContent) -> bool:
        try:
            self._save(store, content)
        except UserError as error:
            self._count_failure(error)
            return False
        return True

    def _save(self, store: CheckpointStore, content: CheckpointContent) -> Path:
        _refuse_broken_weights(content)
        self._run.restore()
        if isinstance(store, MilestoneStore):
            store.config = self._run.recorded
        path = store.save(*content)
        if isinstance(store, MilestoneStore):
            self._last_milestone = content.step, path
        # A run that keeps improving writes its best often, which is not worth a line on the screen each time.
        log.log(logging.DEBUG if store.folder.name == "best" else logging.INFO, "saved %s", path)
        return path

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Counts a failed save, and lets the caller know of it."""
        try:
            yield
        except UserError as error:
            self._count_failure(error)
            raise

    def _count_failure(self, error: Exception) -> None:
        self.health["failed_saves"] += 1
        log.error("could not save: %s", error)


def _refuse_broken_weights(content: CheckpointContent) -> None:
    """Raises CheckpointError: a policy that holds NaN would replace the good checkpoints one by one."""
    for name, tensor in content.tensors.get("policy", {}).items():
        if not tensor.isfinite().all():
            raise CheckpointError(f"step {content.step:,} was not saved: {name} of the policy holds NaN or infinity. The "
                                  "earlier checkpoints are good: resume with a lower ppo.learning_rate")


def _actor_and_critic(tensors: Tensors) -> Tensors:
    """Returns actor and critic as files of their own, each with what both share (observation statistics, a shared trunk)."""
    policy = tensors.get("policy", {})
    shared_trunk = not any(name.startswith("critic.trunk.") for name in policy)
    actor_only = "actor.head." if shared_trunk else "actor."
    return {"actor": {name: tensor for name, tensor in policy.items() if not name.startswith("critic.")},
            "critic": {name: tensor for name, tensor in policy.items() if not name.startswith(actor_only)}}
