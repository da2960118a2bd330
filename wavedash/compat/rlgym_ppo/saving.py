"""A listener calls `learner.save` as scripts expect: whenever a checkpoint is due, at the end, and at the press of a key.

The Saver has written our own checkpoint before. A `save` that a script has replaced is called in any case.
"""
from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wavedash.errors import UserError
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.runs.checkpoint import Checkpoint
from wavedash.runs.interrupt import uninterrupted
from wavedash.runs.saver import Saver

if TYPE_CHECKING:
    from wavedash.compat.rlgym_ppo.learner import Learner as Owner
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)


class ScriptSaver(Listener):
    """Lets `saver` save, then calls `owner.save`."""

    def __init__(self, owner: Owner, saver: Saver) -> None:
        self._owner, self._saver = owner, saver
        self._failed = self._saved = 0

    @property
    def health(self) -> Mapping[str, int]:  # type: ignore[override]
        return {**self._saver.health, "failed_exports": self._failed}

    def on_start(self, learner: Learner) -> None:
        self._saver.on_start(learner)
        self._saved = learner.steps

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        self._saver.on_iteration(learner, report)
        owner, steps = self._owner, report.steps
        owner.ts_since_last_save = steps - self._saved
        if steps // owner.save_every_ts > self._saved // owner.save_every_ts:
            latest = owner.own_checkpoints.latest()  # written by the Saver in this iteration
            self.save(learner, latest if latest is not None and latest.step == steps else None)

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        """Saves what the Saver has saved: after an error that is the state at the beginning of the interrupted iteration."""
        self._saver.on_stop(learner, error)
        latest = self._owner.own_checkpoints.latest()
        if latest is not None and latest.step > self._saved:
            self.save(learner, latest)

    def save(self, learner: Learner, latest: Checkpoint | None = None) -> None:
        """Calls `save` for the current state, or for a checkpoint."""
        owner = self._owner
        step = learner.steps if latest is None else latest.step
        try:
            with uninterrupted(), owner.saving(latest):
                owner.save(step)
        except UserError as error:
            self._failed += 1
            log.error("could not save: %s", error)
            return
        self._saved, owner.ts_since_last_save = step, 0


class Keys(Listener):
    """Handles keys as rlgym-ppo does: p pauses, c saves, q saves and stops. It does nothing without a keyboard."""

    def __init__(self, owner: Owner, saver: ScriptSaver, keyboard: Any) -> None:
        self._owner, self._saver, self._keyboard = owner, saver, keyboard

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        keyboard = self._keyboard
        key = keyboard.getch() if keyboard.kbhit() else ""
        if key in ("c", "q"):
            self._saver.save(learner)
        if key == "q":
            learner.stop("q was pressed")
        elif key == "p":
            print("paused; any key goes on", flush=True)
            while not keyboard.kbhit():
                if learner.stop_reason is not None:  # Ctrl-C
                    return
                time.sleep(0.1)
            keyboard.getch()

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        self._keyboard.set_normal_term()
