"""DebugReport: the listener that a debug switch turns on. It writes what it finds to the log and to a file of its own."""
from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from wavedash.findings import Findings
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.runs.folder import RunFolder
from wavedash.runs.links import not_following

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)


class DebugReport(Listener):
    """Looks at the first iterations of this process. Subclasses say what they find before the first one, in each, and over all
    of them. Whatever fails in a report is logged, and the run goes on."""

    switch: str
    """The option of `debug` that turns it on, and the name of its file"""

    def __init__(self, run: RunFolder, iterations: int) -> None:
        self.run, self.iterations = run, iterations
        self.seen = 0
        """Iterations that were looked at"""

    # --- what reports differ in ----------------------------------------------------------------------------------------

    def before(self, learner: Learner) -> Findings | None:
        """Returns what is found before the first iteration. Normalisers may have no statistics yet."""
        return None

    def look(self, learner: Learner, report: IterationReport) -> None:
        """Remembers what `conclude` needs of an iteration."""

    def conclude(self, learner: Learner) -> Findings | None:
        """Returns what is found over all iterations that were looked at: after the last of them, or when the run ends
        before."""
        return None

    # --- the listener --------------------------------------------------------------------------------------------------

    def on_start(self, learner: Learner) -> None:
        self.guard(learner, lambda: self.before(learner), "before the first iteration")

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        if self.seen == self.iterations:
            return
        self.seen += 1
        self.guard(learner, lambda: self.look(learner, report))
        if self.seen == self.iterations:
            self._conclude(learner)

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        if 0 < self.seen < self.iterations:
            self._conclude(learner)

    def _conclude(self, learner: Learner) -> None:
        which = "the first iteration" if self.seen == 1 else f"the first {self.seen} iterations"
        self.guard(learner, lambda: self.conclude(learner), which)

    def guard(self, learner: Learner, find: Callable[[], Findings | None], when: str = "") -> None:
        """Publishes what `find` returns. A run must not end because a report about it fails."""
        try:
            found = find()
        except Exception as error:
            log.warning("debug.%s failed (%s: %s): the run goes on without this report", self.switch, type(error).__name__,
                        error)
            log.debug("debug.%s failed", self.switch, exc_info=True)
            return
        if found:
            self._publish(found, f"debug.{self.switch}, {when} (step {learner.steps:,})")

    def _publish(self, found: Findings, heading: str) -> None:
        """Logs the lines as information and problems as warnings; the file gets all of it."""
        good = [] if found.problems else ["nothing looks wrong"]
        log.info("%s", "\n".join([f"--- {heading}", *found.lines, *good]))
        for problem in found.problems:
            log.warning("debug.%s: %s", self.switch, problem)
        path = self.run.debug / f"{self.switch}.txt"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "a", encoding="utf-8", opener=not_following) as file:
                verdict = [f"* {text}" for text in found.problems or good]
                lines = [f"--- {heading}", *verdict, "", *found.lines, "", *found.details]
                file.write("\n".join(lines).rstrip() + "\n\n")
        except OSError as error:
            log.warning("%s cannot be written (%s): the report is in the log only", path, error)
