"""Shelf: the best few recordings of each kind in a folder. What is there is known from the names of files alone, so a run that
is resumed goes on with it.

    recordings/000012345678-goal-112.wdr    steps, kind and score
"""
from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from wavedash.recordings.file import SUFFIX, Recording
from wavedash.recordings.layout import RecordingError

NAME = re.compile(rf"(\d{{12,}})-([a-z][a-z0-9_.]*)-(\d+){re.escape(SUFFIX)}")
RENEWED = 2
"""A recording of the same score replaces one that was made with so many times fewer steps. So a shelf shows how the policy
plays now, and still few files are written."""
MOST_BYTES = 1 << 20
"""The largest recording that is kept"""


class Kept(NamedTuple):
    """A recording on the shelf."""

    step: int
    kind: str
    score: int
    path: Path


class Shelf:
    """Keeps at most `each` recordings of every kind."""

    def __init__(self, folder: Path, each: int) -> None:
        self.folder, self.each = folder, each
        self.kept: list[Kept] = []

    def look(self) -> None:
        """Looks at what is there. Files that others have put there are left alone."""
        self.kept = []
        with suppress(OSError):
            named = [(path, NAME.fullmatch(path.name)) for path in sorted(self.folder.glob(f"*{SUFFIX}"))]
            self.kept = [Kept(int(match[1]), match[2], int(match[3]), path) for path, match in named if match is not None]

    def wants(self, kind: str, score: int, step: int) -> bool:
        """Whether a recording would be kept."""
        mine = [one for one in self.kept if one.kind == kind]
        return len(mine) < self.each or any(_gives_way(one, score, step) for one in mine)

    def put(self, recording: Recording, kind: str, score: int, step: int) -> None:
        """Writes a recording that is wanted; then the one that gives way to it is removed. RecordingError: it is not there."""
        path = self.folder / f"{step:012d}-{kind}-{score}{SUFFIX}"
        if len(recording.to_bytes()) > MOST_BYTES:
            return
        try:
            self.folder.mkdir(exist_ok=True)  # without parents: a run folder that was moved away is not made anew
        except OSError as error:
            raise RecordingError(f"cannot make {self.folder}: {error.strerror or error}") from error
        recording.write(path)
        self.kept = [one for one in self.kept if one.path != path] + [Kept(step, kind, score, path)]
        while len(mine := [one for one in self.kept if one.kind == kind]) > self.each:
            worst = min(mine, key=lambda one: (one.score, one.step))
            with suppress(OSError):
                worst.path.unlink(missing_ok=True)
            self.kept.remove(worst)


def _gives_way(one: Kept, score: int, step: int) -> bool:
    return score > one.score or (score == one.score and step >= RENEWED * one.step)
