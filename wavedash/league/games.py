"""Games: who played whom and how it ended, one row of a CSV file per game.

A file is written by appending whole lines, so that a process that is killed leaves at most a torn last line, which the next one
cuts off. A run remembers how many games its checkpoint knew; what was played after it is cut off when the run is resumed.
"""
from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Self

from wavedash.errors import UserError
from wavedash.runs.durable import replace_file
from wavedash.runs.links import not_following


@dataclass(frozen=True)
class Game:
    """The result of one game."""

    time: str
    """When it ended, in UTC: 2026-11-16T15:04:05Z"""
    step: int
    """Agent steps of the run that played it; 0 outside of a run"""
    blue: str
    """A player and its version: `chaser`, `my-bot@120000000`"""
    orange: str
    size: int
    """Cars per team"""
    blue_goals: int
    orange_goals: int
    seconds: float
    """How long it lasted, in seconds of the game"""
    simulator: str
    seed: int

    def __post_init__(self) -> None:
        if self.blue == self.orange:
            raise UserError(f"{self.blue} played itself: such a game says nothing about strength")

    @classmethod
    def from_row(cls, row: Sequence[str]) -> Self:
        """ValueError: the row does not hold a game."""
        kinds = {"int": int, "float": float, "str": str}
        if len(row) != len(fields(cls)):
            raise ValueError(f"{len(row)} columns instead of {len(fields(cls))}")
        game = cls(*(kinds[str(field.type)](text) for field, text in zip(fields(cls), row, strict=True)))
        if not (math.isfinite(game.seconds) and min(game.size, game.blue_goals, game.orange_goals, game.seconds) >= 0):
            raise ValueError("a number that no game has")
        return game


HEADER = ",".join(field.name for field in fields(Game)) + "\n"
LONGEST_LINE = 1 << 16


class GamesFile:
    """games.csv of a run or of a tournament."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Game]:
        """All games, in the order they were added, without a torn last line; none where there is no file. UserError: it holds
        something else."""
        try:
            whole = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UserError(f"cannot read {self.path}: {error.strerror or error}; name a games.csv") from error
        self._check_header(whole[: whole.find(b"\n") + 1] or whole)
        whole = whole[: whole.rfind(b"\n") + 1]
        rows = csv.reader(io.StringIO(whole.decode("utf-8", errors="replace")))
        games = []
        for number, row in islice(enumerate(rows, start=1), 1, None):
            try:
                games.append(Game.from_row(row))
            except (ValueError, UserError) as error:
                raise UserError(f"{self.path}, line {number}, holds no game ({error}): {','.join(row)[:80]}. Correct the line "
                                "or delete it; all other games stay") from error
        return games

    def add(self, games: Iterable[Game]) -> None:
        """Append games; they are on the disk when this returns. UserError: it is another file."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(astuple(game) for game in games)
        with open(self.path, "ab+", opener=not_following) as file:
            end = self._end_of_whole_lines(file)
            file.truncate(end)
            file.write(("" if end else HEADER).encode() + text.getvalue().encode())
            file.flush()
            os.fsync(file.fileno())

    def keep(self, count: int) -> None:
        """Cut off what was added after the first `count` games. UserError: there are fewer."""
        games = self.read()
        if len(games) < count:
            raise UserError(f"{self.path} has {len(games)} games, and the checkpoint knew {count}: it was cut or replaced. "
                            "Put the file back, or delete it to begin a new one with opponents but without results")
        if len(games) > count:
            kept = self.path.read_bytes().splitlines(keepends=True)[: count + 1]
            replace_file(self.path, b"".join(kept))

    def _end_of_whole_lines(self, file: BinaryIO) -> int:
        """Find where a torn last line begins, without reading what comes before it."""
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(0)
            self._check_header(file.readline())
        start = file.seek(max(0, size - LONGEST_LINE))
        return start + file.read().rfind(b"\n") + 1

    def _check_header(self, line: bytes) -> None:
        whole = line.endswith(b"\n")
        if line != HEADER.encode() if whole else not HEADER.encode().startswith(line):
            raise UserError(f"{self.path} is no file of games: its first line is not {HEADER.strip()}. Name another file, or "
                            "move this one away to begin a new one")
