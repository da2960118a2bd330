"""Curriculum is the listener that moves a run through its phases.

After every iteration it asks whether the phase is over, and before the next one it gives the run the settings of that moment.
Settings that may change while a run runs are changed in place (runs/changes.py): no CUDA graph is captured anew. If anything
else differs, such as the sizes of the teams, the run is saved and goes on in the same process as a resume would, with the new
settings (`resumes`).

Its state is part of the checkpoint, and settings are a function of it (plan.py). So a run that is killed in the middle of a
ramp or of a move goes on bit for bit.
"""
from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wavedash.config import RunConfig
from wavedash.curriculum.conditions import after_iteration, conditions, described
from wavedash.curriculum.plan import Plan
from wavedash.curriculum.state import SAVED_AS, PhaseState
from wavedash.errors import UserError
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.runs.changes import apply, live_keys
from wavedash.runs.compatible import changes
from wavedash.runs.events import PHASE, EventsFile
from wavedash.yaml_text import Key

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner
    from wavedash.runs.folder import RunFolder
    from wavedash.runs.saver import Saver

log = logging.getLogger(__name__)

PATIENCE = 50
"""Iterations after which a metric that was never measured is worth a warning"""


class Curriculum(Listener):
    """Holds the configuration of a run, with or without phases, and says what counts now."""

    saved_as = SAVED_AS
    orders = ("phase",)

    def __init__(self, config: RunConfig, state: PhaseState | None = None, run: RunFolder | None = None) -> None:
        """`state`: that of a checkpoint; a new run begins with its first phase. ConfigError: a phase cannot be."""
        self.plan = Plan(config)
        self.state = (state or PhaseState()).within(len(config.phases))
        self.run = run
        """The folder of the run, in the first rank: moves are written to its events"""
        self.saver: Saver | None = None
        """Saves a move that a user has ordered, in the first rank"""
        self.resumes = False
        """Whether the run ended only to go on with settings that need other environments or networks' buffers"""
        self._settled = False
        self._waited = 0
        self._live: frozenset[str] = frozenset()
        """Keys that may change in place. They are the same in all phases, because all have the parts of all."""

    # --- what counts ----------------------------------------------------------------------------------------------------

    def settings(self, steps: int) -> RunConfig:
        """The settings that count after so many steps."""
        return self.plan.settings(self.state, steps)

    def with_values(self, config: RunConfig, values: Mapping[Key, Any]) -> RunConfig:
        """`config`, which is as the run's own, after a change by its user."""
        return Plan(config).with_values(self.state, values)

    def adopt(self, config: RunConfig) -> None:
        """Goes on with another configuration of the run, which a user has changed."""
        self.plan = Plan(config)
        self._settled = False

    # --- a listener -----------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return self.state.model_dump() if self.plan.phases else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.state = PhaseState.model_validate(state).within(len(self.plan.phases))

    def on_start(self, learner: Learner) -> None:
        self.resumes = self._settled = False
        self._name(learner)
        if self.plan.phases:
            self._live = frozenset(live_keys(learner))
            self._refuse_fixed_ramps()
            if learner.ranks.rank == 0:
                log.info("%s", self._told(learner.steps))

    def on_iteration(self, learner: Learner, report: IterationReport) -> Mapping[str, float] | None:
        if not self.plan.phases:
            return None
        before = self.state
        if learner.ranks.rank == 0:  # it alone is told of ratings
            self._watch(report)
        self._agree(learner)
        if self.state.number != before.number:
            until = self.plan.phases[before.number].until
            assert until is not None
            self._moved(learner, before, described(until, before, report.steps))
        return {"phase/number": float(before.number + 1), "phase/steps": float(report.steps - before.began[before.number])}

    def between_iterations(self, learner: Learner) -> None:
        """Gives the run the settings of this moment, if they have changed."""
        if self.plan.phases:
            self._agree(learner)  # a move that was ordered may have failed in the first rank
        if self._settled or learner.steps >= learner.total_steps:
            return
        settings = self.settings(learner.steps)
        self._settled = not self.plan.moves(self.state, learner.steps)
        if settings == learner.config:
            return
        if fixed := sorted(changes(learner.config, settings).keys() - self._live):
            self.resumes = True
            log.info("the run is saved and goes on with other settings of %s", ", ".join(fixed[:3]))
            learner.stop("it goes on with other settings")
        else:
            apply(learner, settings)

    def obey(self, learner: Learner, order: str, argument: str | None) -> str:
        """Moves to the phase that a user orders: `phase=next`, `phase=back`, `phase=3`, `phase=GoldSkills`."""
        if not self.plan.phases:
            raise UserError("this run has no phases: write them into its configuration (docs/curriculum.md)")
        if argument is None:
            return self._told(learner.steps)
        before = self.state
        self.state = before.moved(self.plan.number_of(argument, before.number), learner.steps)
        try:
            if self.saver is not None:
                self.saver.save_again(learner)  # nothing else remembers the order if the run is killed
        except BaseException:
            self.state = before
            raise
        self._moved(learner, before, "ordered by hand")
        return self._told(learner.steps)

    # ----------------------------------------------------------------------------------------------------------------------

    def _agree(self, learner: Learner) -> None:
        """Gives all ranks the state of the first."""
        ranks = learner.ranks
        self.state = ranks.scatter([self.state] * ranks.size if ranks.rank == 0 else None)

    def _watch(self, report: IterationReport) -> None:
        """Asks whether the phase is over, and moves on if it is."""
        until = self.plan.phases[self.state.number].until
        if until is None:
            return
        self.state = after_iteration(until, self.state, report.steps, report.metrics)
        self._warn_of_unknown(report.metrics)
        if self.state.held >= until.iterations:
            self.state = self.state.moved(self.state.number + 1, report.steps)

    def _moved(self, learner: Learner, before: PhaseState, why: str) -> None:
        self._settled = False
        self._waited = 0
        self._name(learner)
        if learner.ranks.rank > 0:
            return
        names = [self.plan.phases[number].name for number in (before.number, self.state.number)]
        log.info("phase %d, %s, begins at step %s after %s: %s", self.state.number + 1, names[1], f"{learner.steps:,}",
                 names[0], why)
        if self.run is not None:
            row = {"key": PHASE, "old": names[0], "new": names[1], "by": why}
            EventsFile(self.run.events).record(learner, [row])

    def _name(self, learner: Learner) -> None:
        learner.phase = f"Phase{self.state.number + 1}-{self.plan.phases[self.state.number].name}" if self.plan.phases else None

    def _told(self, steps: int) -> str:
        phase = self.plan.phases[self.state.number]
        until = "by hand only" if phase.until is None else f"until {described(phase.until, self.state, steps)}"
        last = self.state.number + 1 == len(self.plan.phases)
        return (f"phase {self.state.number + 1} of {len(self.plan.phases)}, {phase.name}, since step "
                f"{self.state.began[self.state.number]:,}" + (": the last one" if last else f": {until}"))

    def _refuse_fixed_ramps(self) -> None:
        """Raises UserError if a ramp moves a setting that cannot change while a run runs."""
        for number, phase in enumerate(self.plan.phases):
            state = PhaseState().moved(number, 0)
            ends = [self.plan.settings(state, steps) for steps in (0, 2**62)]
            if fixed := sorted(changes(*ends).keys() - self._live):
                raise UserError(f"phase {phase.name!r}: {fixed[0]} cannot be a ramp, because it cannot change while a run "
                                "runs; give it one value")

    def _warn_of_unknown(self, metrics: Mapping[str, float]) -> None:
        """Warns once of conditions whose metric has not been measured for long: it may be misspelt."""
        self._waited += 1
        phase = self.plan.phases[self.state.number]
        if self._waited != PATIENCE or phase.until is None:
            return
        for condition in conditions(phase.until):
            if condition.told not in self.state.known:
                near = difflib.get_close_matches(condition.metrics[0], metrics, n=1)
                log.warning("phase %s waits for %s, but no iteration has measured %s yet%s", phase.name, condition.told,
                            " or ".join(condition.metrics), f"; did you mean {near[0]}?" if near else "")
