"""`metrics.jsonl` holds one JSON object per iteration. It is always written, whatever else is switched off.

Read it with `pandas.read_json("metrics.jsonl", lines=True)`.
"""
from __future__ import annotations

import json
import logging
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavedash.ppo.listener import IterationReport, Listener
from wavedash.report.all_metrics import all_metrics
from wavedash.report.append_file import AppendFile

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)


class MetricsFile(Listener):
    """Writes a line at the end of each iteration. After a resume the file reads as if the run had never stopped."""

    def __init__(self, path: Path):
        self.path = path
        self._file: AppendFile | None = None

    def on_start(self, learner: Learner) -> None:
        try:
            if self.path.exists():
                cut_after(self.path, learner.steps)
        except OSError as error:
            log.warning("%s cannot be cut back to step %d (%s): later steps will be in it twice", self.path,
                        learner.steps, error)
        self._file = AppendFile(self.path)

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        assert self._file is not None
        metrics = {"steps": report.steps, "total_steps": report.total_steps, **all_metrics(report)}
        # JSON has no NaN; readers such as pandas turn null into NaN.
        line: dict[str, Any] = {name: value if math.isfinite(value) else None for name, value in metrics.items()}
        if report.phase is not None:
            line["phase"] = report.phase
        self._file.append(json.dumps(line).encode() + b"\n")

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        if self._file is not None:
            self._file.close()


def cut_after(path: Path, steps: int) -> None:
    """Removes a last line that a kill left unfinished, and all lines past `steps`, which the resumed run will write anew."""
    keep = position = 0
    with path.open("r+b") as file:
        for line in file:
            position += len(line)
            at = _steps_of(line)
            if at is None:
                continue
            if at > steps:
                break
            keep = position
        file.truncate(keep)


def _steps_of(line: bytes) -> int | None:
    """Returns the steps of a line, or None if it is not complete."""
    try:
        return int(json.loads(line)["steps"]) if line.endswith(b"\n") else None
    except (ValueError, KeyError, TypeError):
        return None
