"""The console shows a live view in a terminal and plain lines elsewhere; log messages appear above either."""
from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.live import Live
from rich.text import Text

from wavedash.envs.headline import Headline
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.report.dashboard import LiveView, Progress, plain_line
from wavedash.report.log_file import PACKAGE

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

LIVE_SECONDS = 0.5
"""The least time between two drawings: one takes about 10 ms, so drawing takes 2 % of one core at most"""
PLAIN_SECONDS = 5.0
"""The least time between two lines"""


class ConsoleView(Listener):
    """Draws after an iteration if the last drawing is old enough. There is no thread that draws in between."""

    def __init__(self, run_folder: Path, mode: Literal["auto", "live", "plain"]):
        self._checkpoints = run_folder / "checkpoints"
        self._console = _SteadyConsole(force_terminal=True if mode == "live" else None, highlight=False)
        live = mode == "live" or (mode == "auto" and self._console.is_terminal and not self._console.is_dumb_terminal)
        self._live = Live(console=self._console, auto_refresh=False) if live else None
        self._handler = _ConsoleHandler(self._console)
        PACKAGE.addHandler(self._handler)
        self._started = time.monotonic()
        self._first_steps = self._skipped = 0
        self._drawn = -float("inf")
        self._report: IterationReport | None = None
        self._rating: dict[str, float] = {}
        """The metrics of the last rating: iterations without one show them too"""
        self._headlines: Sequence[Headline] = ()

    def on_start(self, learner: Learner) -> None:
        self._started, self._first_steps = time.monotonic(), learner.steps
        self._headlines = learner.env.headlines
        with contextlib.suppress(OSError):
            if self._live:
                self._live.start()

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        self._rating = {name: x for name, x in report.metrics.items() if name.startswith("rating/")} or self._rating
        self._report = report = report.with_metrics(self._rating)
        self._skipped += int(report.metrics.get("optim/skipped", 0))
        if time.monotonic() - self._drawn >= (LIVE_SECONDS if self._live else PLAIN_SECONDS):
            self._draw(report)

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        if self._report:
            self._draw(self._report)
        with contextlib.suppress(OSError):
            if self._live:
                self._live.stop()
        PACKAGE.removeHandler(self._handler)

    def _draw(self, report: IterationReport) -> None:
        progress = self._progress(report)
        with contextlib.suppress(OSError):  # the output may go to a full disk or a closed terminal
            if self._live:
                self._live.update(LiveView(report, progress, self._headlines), refresh=True)
            else:
                self._console.print(plain_line(report, progress, self._headlines), markup=False, soft_wrap=True)
        self._drawn = time.monotonic()

    def _progress(self, report: IterationReport) -> Progress:
        elapsed, done = time.monotonic() - self._started, report.steps - self._first_steps
        remaining = elapsed * max(0, report.total_steps - report.steps) / done if done else None
        return Progress(elapsed, remaining, _newest_checkpoint(self._checkpoints), self._skipped)


def _newest_checkpoint(folder: Path) -> str:
    try:
        saved, name = max((path.stat().st_mtime, path.name) for path in folder.glob("step-*"))
    except (OSError, ValueError):  # there is none yet, or one was pruned in the meantime
        return "none yet"
    return f"{name}, {max(0.0, time.time() - saved):.0f} s ago"


class _SteadyConsole(Console):
    def on_broken_pipe(self) -> None:
        """Goes on without output where the reader has left (`wavedash train | head`). Rich would exit."""
        self.quiet = True


class _ConsoleHandler(logging.Handler):
    COLOURS = {logging.WARNING: "yellow", logging.ERROR: "red", logging.CRITICAL: "red"}  # noqa: RUF012

    def __init__(self, console: Console):
        super().__init__(logging.INFO)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):
            self._console.print(Text(self.format(record), self.COLOURS.get(record.levelno, "")), soft_wrap=True)
