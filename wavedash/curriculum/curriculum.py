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
from wavedash.config_file import changed_config
from wavedash.curriculum.conditions import after_iteration, conditions, described
from wavedash.curriculum.plan import IN_PHASES, Plan
from wavedash.curriculum.state import SAVED_AS, PhaseState
from wavedash.errors import UserError
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.report.all_metrics import all_metrics
from wavedash.runs.changes import ChangeError, apply, differing, live_keys
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

    def __init__(self, config: RunConfig, state: PhaseState | None = None) -> None:
        """`state`: that of a checkpoint; a new run begins with its first phase. ConfigError: a phase cannot be."""
        self.plan = Plan(config)
        self.state = (state or PhaseState()).among(self.plan.names)
        self.run: RunFolder | None = None
        """The folder of the run, in the first rank: moves are written to its events"""
        self.saver: Saver | None = None
        """Saves a move that a user has ordered, in the first rank"""
        self.resumes = False
        """Whether the run ended only to go on with settings that need other environments or buffers"""
        self._given: RunConfig | None = None
        """The settings of the plan that the run has taken over. Listeners may have changed others beside them."""
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

    def adopt(self, config: RunConfig, steps: int) -> None:
        """Goes on with another configuration of the run, which a user has changed after so many steps. What differs counts
        already."""
        before = None if self._given is None else self.settings(steps)
        self.plan = Plan(config)
        if self._given is not None and before is not None:
            self._given = changed_config(self._given, differing(before, self.settings(steps)))
        self._settled = False

    def until(self, key: Key) -> str:
        """Says up to when a change of this setting counts, if a later phase sets it."""
        later = [name for name in self.plan.set_by(key) if self.plan.names.index(name) > self.state.number]
        return f" (until phase {later[0]}, which sets it)" if later and key[0] in IN_PHASES else ""

    # --- a listener -----------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return self.state.model_dump() if self.plan.phases else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.state = PhaseState.model_validate(state).among(self.plan.names)

    def on_start(self, learner: Learner) -> None:
        self.resumes = self._settled = False
        self._name(learner)
        if self.plan.phases:
            self._given = self.settings(learner.steps if learner.iteration else 0)
            self._live = frozenset(live_keys(learner))
            if learner.ranks.rank == 0:
                log.info("%s", self._told(learner.steps))

    def on_iteration(self, learner: Learner, report: IterationReport) -> Mapping[str, float] | None:
        if not self.plan.phases:
            return None
        before, why = self.state, ""
        if learner.ranks.rank == 0:  # it alone is told of ratings
            why = self._watch(report)
        self._agree(learner)
        if self.state.number != before.number:
            self._moved(learner, before, why)
        return {"phase/number": float(before.number + 1), "phase/steps": float(report.steps - before.began[before.number])}

    def between_iterations(self, learner: Learner) -> None:
        """Gives the run the settings of this moment, if they have changed. The first rank decides for all."""
        if not self.plan.phases:
            return
        self._agree(learner)  # a move that was ordered may have failed in the first rank
        self._name(learner)
        stops = learner.steps >= learner.total_steps or learner.ranks.any(learner.stop_reason is not None)
        if self._settled or stops or self._given is None:
            return
        settings = self.settings(learner.steps)
        self._settled = not self.plan.moves(self.state, learner.steps)
        changed = differing(self._given, settings)
        fixed = sorted({".".join(map(str, key)) for key in changed} - self._live) if learner.ranks.rank == 0 else []
        fixed = learner.ranks.shared(fixed)
        try:
            if changed and not fixed:
                apply(learner, changed_config(learner.config, changed))
                self._given = settings
        except ChangeError as error:  # an option of a part that only a new part can have
            fixed = [str(error)]
        if fixed:
            self.resumes = True
            log.info("the run is saved and goes on with other settings: %s", ", ".join(fixed[:3]))
            learner.stop("it goes on with other settings")

    def obey(self, learner: Learner, order: str, argument: str | None) -> str:
        """Moves to the phase that a user orders: `phase=next`, `phase=back`, `phase=3`, `phase=GoldSkills`."""
        if not self.plan.phases:
            raise UserError("this run has no phases: write them into its configuration (docs/curriculum.md)")
        if argument is None:
            return self._told(learner.steps)
        before = self.state
        self.state = before.moved(self.plan.number_of(argument, before.number), learner.steps).among(self.plan.names)
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
        self.state, self._settled = learner.ranks.shared((self.state, self._settled))

    def _watch(self, report: IterationReport) -> str:
        """Asks whether the phase is over, and moves on if it is. Returns what its conditions have come to."""
        until = self.plan.phases[self.state.number].until
        if until is None:
            return ""
        self.state = after_iteration(until, self.state, report.steps, all_metrics(report))
        self._warn_of_unknown(report.metrics)
        why = described(until, self.state, report.steps)
        if self.state.held >= until.iterations:
            self.state = self.state.moved(self.state.number + 1, report.steps).among(self.plan.names)
        return why

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
        if self.plan.phases:
            learner.phase = f"Phase{self.state.number + 1}-{self.state.name}"

    def _told(self, steps: int) -> str:
        phase = self.plan.phases[self.state.number]
        until = "by hand only" if phase.until is None else f"until {described(phase.until, self.state, steps)}"
        last = self.state.number + 1 == len(self.plan.phases)
        return (f"phase {self.state.number + 1} of {len(self.plan.phases)}, {phase.name}, since step "
                f"{self.state.began[self.state.number]:,}" + (": the last one" if last else f": {until}"))

    def _warn_of_unknown(self, metrics: Mapping[str, float]) -> None:
        """Warns once of conditions whose metric has not been measured for long: it may be misspelt."""
        self._waited += 1
        phase = self.plan.phases[self.state.number]
        if self._waited != PATIENCE or phase.until is None:
            return
        for condition in conditions(phase.until):
            rare = condition.metrics[0].startswith("rating/")  # ratings may be hundreds of iterations apart
            if condition.told not in self.state.known and not rare:
                near = difflib.get_close_matches(condition.metrics[0], metrics, n=1)
                log.warning("phase %s waits for %s, but no iteration has measured %s yet%s", phase.name, condition.told,
                            " or ".join(condition.metrics), f"; did you mean {near[0]}?" if near else "")
