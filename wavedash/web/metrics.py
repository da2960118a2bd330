"""The metrics of a run, read from `metrics.jsonl` as it grows.

Only what is new is read. A line that is not complete yet is read later. A run that is resumed cuts the file back to its
checkpoint: the file is then shorter, or other bytes are where the last line was, and it is read anew.
"""
from __future__ import annotations

import itertools
import json
import math
import os
from array import array
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from wavedash.runs.links import plain_file

MOST_NAMES = 4000
"""Metrics of a run that are kept; further ones are left out"""
LONGEST_LINE = 1 << 20
KEPT_TAIL = 64
"""Bytes before the place that was read to, by which a file is known again"""
PIECE = 1 << 20
_editions = itertools.count(1)


class MetricsTail:
    """Follows the file of one run. All methods may be called from any thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._clear()

    def _clear(self) -> None:
        self._offset, self._tail, self._rest, self._skipping = 0, b"", b"", False
        self._steps = array("d")
        self._columns: dict[str, array[float]] = {}
        self._phases: list[dict[str, Any]] = []
        self._phase: str | None = None
        self.last: dict[str, Any] = {}
        self._edition = next(_editions)
        """Another number whenever rows that were told before are no longer true"""

    def refresh(self) -> None:
        """Reads what was written since the last call. A file that is not there has no rows."""
        with self._lock:
            try:
                with open(self.path, "rb", opener=plain_file) as file:
                    if not self._is_known(file):
                        self._clear()
                    file.seek(self._offset)
                    while piece := file.read(PIECE):
                        self._offset += len(piece)
                        self._tail = (self._tail + piece)[-KEPT_TAIL:]
                        self._take(piece)
            except OSError:
                self._clear()

    def _is_known(self, file: Any) -> bool:
        if os.fstat(file.fileno()).st_size < self._offset:
            return False
        file.seek(self._offset - len(self._tail))
        return file.read(len(self._tail)) == self._tail

    def _take(self, piece: bytes) -> None:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            if self._skipping:
                self._skipping = False  # the end of a line that was too long to be kept
                continue
            self._add(line)
        if len(self._rest) > LONGEST_LINE:
            self._rest, self._skipping = b"", True

    def _add(self, line: bytes) -> None:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(row, dict) or (steps := _number(row.get("steps"))) is None:
            return
        if self._steps and self._steps[-1] >= steps:
            self._edition = next(_editions)
        while self._steps and self._steps[-1] >= steps:
            self._drop_last()  # the run went back, and the file could not be cut
        before = self._steps[-1] if self._steps else 0.0
        self._steps.append(steps)
        for name, value in row.items():
            if name != "steps" and (found := _number(value)) is not None and (
                    name in self._columns or len(self._columns) < MOST_NAMES):
                column = self._columns.setdefault(name, array("d"))
                column.extend([math.nan] * (len(self._steps) - 1 - len(column)))
                column.append(found)
        phase = row.get("phase")
        if isinstance(phase, str) and phase != self._phase:
            self._phases.append({"step": before, "name": phase_name(phase)})
            self._phase = phase
        self.last = row

    def _drop_last(self) -> None:
        self._steps.pop()
        for column in self._columns.values():
            if len(column) > len(self._steps):
                column.pop()
        at = self._steps[-1] if self._steps else -1.0
        while self._phases and self._phases[-1]["step"] > at:
            self._phases.pop()
            self._phase = None

    @property
    def rows(self) -> int:
        return len(self._steps)

    def mean(self, name: str, rows: int = 20) -> float | None:
        """The mean of the last values of a metric."""
        with self._lock:
            found = [x for x in self._columns.get(name, ())[-rows:] if not math.isnan(x)]
        return sum(found) / len(found) if found else None

    def total(self, name: str) -> float:
        """The sum of a metric over the run."""
        with self._lock:
            return float(np.nansum(np.array(self._columns.get(name, ()))))

    def names(self) -> list[str]:
        with self._lock:
            return sorted(self._columns)

    def table(self, asked: list[str] | None = None, points: int = 1500, after: float | None = None) -> dict[str, Any]:
        """Steps and columns, those after a step. Where there are more than `points`, each point is the mean of neighbouring
        iterations, and stands at the step of the last of them. Rows may be added to those of the same `edition`; where it is
        another one, all must be asked for again."""
        with self._lock:
            names, steps = sorted(self._columns), np.array(self._steps)
            chosen = {name: np.array(self._columns[name]) for name in (names if asked is None else asked)
                      if name in self._columns}
            phases, edition = list(self._phases), self._edition
        begin = 0 if after is None else int(np.searchsorted(steps, after, side="right"))
        size = max(1, -(-(len(steps) - begin) // max(1, points)))
        starts = np.arange(begin, len(steps), size)
        ends = np.minimum(starts + size, len(steps)) - 1
        return {"edition": edition, "names": names, "steps": steps[ends].tolist(),
                "columns": {name: _means(column, len(steps), starts) for name, column in chosen.items()}, "phases": phases}


def _means(column: np.ndarray, rows: int, starts: np.ndarray) -> list[float | None]:
    """The means of the parts of a column that begin at `starts`, of those values that there are."""
    if not len(starts):
        return []
    whole = np.concatenate([column, np.full(rows - len(column), np.nan)])
    known = ~np.isnan(whole)
    sums = np.add.reduceat(np.where(known, whole, 0.0), starts)
    counts = np.add.reduceat(known.astype(np.int64), starts)
    # reduceat begins at `starts` and goes on to the end of the column, so the last part is right as well.
    return [None if count == 0 or not math.isfinite(value) else value / count
            for value, count in zip(sums.tolist(), counts.tolist(), strict=True)]


def phase_name(phase: str) -> str:
    """The name of a phase for people: `2 Scoring` of `Phase2-Scoring`."""
    return phase.removeprefix("Phase").replace("-", " ", 1)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None
