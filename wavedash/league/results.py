"""results.csv: how the games of training against each member of a league have ended, one row per member and draw.

Games of training begin anywhere and end by the task's own rules, so they are no rated games; those are in games.csv.
"""
from __future__ import annotations

import csv
import io
import logging
from collections.abc import Iterable
from pathlib import Path

from wavedash.league.members import Member
from wavedash.report.append_file import AppendFile

log = logging.getLogger(__name__)

HEADER = b"step,member,won,drawn,lost\n"


class ResultsFile:
    """The file of a run that goes on from `steps`: what was written after that is cut off. A failure to write never ends the
    run; rows are dropped until the file can be written again."""

    def __init__(self, path: Path, steps: int) -> None:
        try:
            kept = cut_after(path, steps) if path.exists() else 0
        except (OSError, ValueError) as error:
            log.warning("%s cannot be cut back to step %d (%s): later rows will be in it twice", path, steps, error)
            kept = 1
        self._file = AppendFile(path)
        if not kept:
            self._file.append(HEADER)

    def add(self, steps: int, members: Iterable[Member]) -> None:
        """Writes the games of each member that were not reported yet."""
        rows = io.StringIO()
        csv.writer(rows, lineterminator="\n").writerows(
            [steps, member.name, *member.unreported] for member in members if any(member.unreported))
        if rows.getvalue():
            self._file.append(rows.getvalue().encode())

    def close(self) -> None:
        self._file.close()


def cut_after(path: Path, steps: int) -> int:
    """Removes a last row that a kill left unfinished, and all rows past `steps`, which the resumed run will write anew. Returns
    the bytes that are left."""
    keep = 0
    with path.open("r+b") as file:
        for number, line in enumerate(file):
            if not line.endswith(b"\n") or (number and int(line.partition(b",")[0]) > steps):
                break
            keep += len(line)
        file.truncate(keep)
    return keep
