"""Games: who played whom and how it ended, one row of a CSV file per game.

A file is written by appending whole lines, so that a process that is killed leaves at most a torn last line, which the next one
cuts off. A run remembers how many games its checkpoint knew; what was played after it is cut off when the run is resumed.
"""
from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Self

from wavedash.errors import UserError


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
        return cls(*(kinds[str(field.type)](text) for field, text in zip(fields(cls), row, strict=True)))


COLUMNS = [field.name for field in fields(Game)]


class GamesFile:
    """games.csv of a run or of a tournament."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Game]:
        """All games, in the order they were added; none where there is no file. UserError: it holds something else."""
        return self._read()[0]

    def add(self, games: Iterable[Game]) -> None:
        """Append games; they are on disk when this returns."""
        whole = self._read()[1] if self.path.exists() else 0
        with self.path.open("r+b" if whole else "wb") as file:
            file.seek(whole)
            file.truncate()
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            if not whole:
                writer.writerow(COLUMNS)
            writer.writerows(astuple(game) for game in games)
            file.write(text.getvalue().encode())

    def keep(self, count: int) -> None:
        """Cut off what was added after the first `count` games. UserError: there are fewer."""
        games, _ = self._read()
        if len(games) < count:
            raise UserError(f"{self.path} has {len(games)} games, and the checkpoint knew {count}: it was cut or replaced. "
                            "Put the file back, or delete it to begin a new one with opponents but without results")
        if len(games) > count:
            kept = self.path.read_bytes().splitlines(keepends=True)[: count + 1]
            replacement = self.path.with_suffix(".new")
            replacement.write_bytes(b"".join(kept))
            replacement.replace(self.path)

    def _read(self) -> tuple[list[Game], int]:
        """The games, and the number of bytes that hold them: a torn last line does not count."""
        if not self.path.exists():
            return [], 0
        whole = self.path.read_bytes()
        whole = whole[: whole.rfind(b"\n") + 1]
        if not whole:
            return [], 0
        header, *rows = csv.reader(io.StringIO(whole.decode("utf-8", errors="replace")))
        if header != COLUMNS:
            raise UserError(f"{self.path} is no file of games: its first line is not {','.join(COLUMNS)}")
        games = []
        for number, row in enumerate(rows, start=2):
            try:
                games.append(Game.from_row(row))
            except ValueError as error:
                raise UserError(f"{self.path}, line {number}, holds no game ({error}): {','.join(row)[:80]}") from error
        return games, len(whole)
