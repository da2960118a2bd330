"""`events.jsonl` of a run: one row for each setting that was changed or refused while the run ran, and for each order.

    {"time": "2026-11-16T23:01:09.709+00:00", "step": 49664, "iteration": 194, "key": "ppo.clip_range", "old": 0.2, "new": 0.1,
     "by": "ann@castle"}

A row of what was refused has `refused`, the reason, instead of `old`; a row of an order has its word as `key`, and `argument`
if it has one. Rows are only ever added; a fork begins with those that its milestone knew of.
"""
from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavedash.runs.durable import write_durably
from wavedash.runs.links import not_following
from wavedash.runs.plain import NotPlainError, from_json, to_json
from wavedash.yaml_text import write_yaml

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)

PHASE = "phase"
"""The key of rows that tell of a move to another phase"""


class EventsFile:
    """Adds rows to the file, and reads what curves show of it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def record(self, learner: Learner, rows: Sequence[Mapping[str, Any]]) -> None:
        """Adds rows of this step, and tells the listeners of what was done."""
        self.write(rows, learner.steps, learner.iteration)
        for event in filter(None, map(in_words, rows)):
            for listener in learner.listeners:
                listener.on_event(learner, event)

    def write(self, rows: Sequence[Mapping[str, Any]], step: int, iteration: int) -> None:
        """Returns once the rows are on the disk. That this fails is logged; it does not end the run."""
        if not rows:
            return
        now = {"time": datetime.now().astimezone().isoformat(timespec="milliseconds"), "step": step, "iteration": iteration}
        try:
            with open(self._path, "a", encoding="utf-8", opener=not_following) as file:
                file.writelines(_line({**now, **row}) for row in rows)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            log.error("%s cannot be written (%s): an event is not in it: %s", self._path, error, rows)

    def rows(self) -> list[dict[str, Any]]:
        """Reads the rows, those that can be read."""
        rows = []
        with suppress(OSError), open(self._path, "rb") as file:
            for line in file:
                with suppress(ValueError):
                    row = from_json(line)
                    if isinstance(row, dict) and isinstance(row.get("step"), int):
                        rows.append(row)
        return rows

    def changes_until(self, step: int) -> int:
        """How many settings were changed by users up to this step."""
        changed = [row for row in self.rows() if "old" in row and row["old"] != row.get("new") and row.get("key") != PHASE]
        return sum(row["step"] <= step for row in changed)

    def copy_until(self, target: Path, step: int, saved_at: int) -> None:
        """Writes the rows that a checkpoint of this step knew of into a new file, if there are any. `saved_at`: when it was
        saved (milliseconds since 1970); what changed at its very step later is not in it."""
        known = [row for row in self.rows() if row["step"] < step or (row["step"] == step and _milliseconds(row) <= saved_at)]
        if known:
            write_durably(target, "".join(map(_line, known)).encode())


def in_words(row: Mapping[str, Any]) -> str | None:
    """Returns what was done, in one line: `ppo.clip_range: 0.2 -> 0.1`, `milestone: before-aerials`. None: nothing was."""
    if "refused" in row or ("old" in row and row["old"] == row.get("new")):
        return None
    if "old" in row:
        return f"{row['key']}: {_text(row['old'])} -> {_text(row.get('new'))}"
    return str(row["key"]) if row.get("argument") is None else f"{row['key']}: {row['argument']}"


def _text(value: Any) -> str:
    return write_yaml(value, inline=True).strip()


def _milliseconds(row: Mapping[str, Any]) -> float:
    """When a row was written; the beginning of time where it does not say so."""
    try:
        return datetime.fromisoformat(row["time"]).timestamp() * 1000
    except (KeyError, TypeError, ValueError, OverflowError):
        return -math.inf


def _line(row: Mapping[str, Any]) -> str:
    """A row as JSON. A value that JSON does not have (a key that is a number) is written as text."""
    try:
        return to_json(dict(row), indent=None) + "\n"
    except NotPlainError:
        return to_json({name: _plain(value) for name, value in row.items()}, indent=None) + "\n"


def _plain(value: Any) -> Any:
    try:
        to_json(value)
    except NotPlainError:
        return repr(value)
    return value
