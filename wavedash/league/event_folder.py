"""The folder of a tournament: what it is (tournament.yaml), what was played (matches.csv, games.csv), and why bots failed
(faults.txt).

A match is a row of matches.csv, then its games are rows of games.csv, each written durably. The seed of a match, which follows
from who meets whom, tells which games are its. A process that is killed in between leaves a match without all of its games: it
does not count, its rows are cut off, and it is played again.
"""
from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock, Timeout

from wavedash.errors import UserError
from wavedash.league.games import Game, GamesFile
from wavedash.runs.durable import replace_file
from wavedash.yaml_text import YamlError, read_yaml

DESCRIPTION, MATCHES, GAMES, RESULTS, PICTURE = "tournament.yaml", "matches.csv", "games.csv", "results.txt", "bracket.svg"
FAULTS = "faults.txt"


@dataclass(frozen=True)
class MatchRow:
    """Games that were played in one go."""

    meeting: str
    first: str
    second: str
    seed: int
    """As in games.csv"""
    games: int
    first_crashes: int = 0
    """Cars of the first whose bot crashed or hung, over all games"""
    first_missed: int = 0
    """Inputs that did not come in time"""
    second_crashes: int = 0
    second_missed: int = 0


HEADER = ",".join(field.name for field in fields(MatchRow))


class EventFolder:
    """Reads and writes the files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.games_file = GamesFile(path / GAMES)

    def description(self) -> dict[str, Any] | None:
        """Returns what the tournament is; None: there is none here."""
        file = self.path / DESCRIPTION
        try:
            found, _ = read_yaml(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError, YamlError) as error:
            raise UserError(f"cannot read {file}: {error}. Name another folder") from error
        if not isinstance(found, dict):
            raise UserError(f"{file} describes no tournament. Name another folder")
        return found

    def begin(self, description: Mapping[str, Any]) -> None:
        """Begins a tournament, or goes on with the one that is here. UserError: that is another one."""
        there = self.description()
        if there is None:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                if (self.path / GAMES).exists():
                    raise UserError(f"{self.path / GAMES} exists, but no {DESCRIPTION}: name another folder")
                replace_file(self.path / DESCRIPTION, yaml.safe_dump(dict(description), sort_keys=False).encode())
            except OSError as error:
                raise UserError(f"cannot write {self.path}: {error.strerror or error}; name another folder") from error
            return
        keys = [key for key in dict.fromkeys([*there, *description]) if there.get(key) != description.get(key)]
        differ = [f"  {key}: there {there.get(key)}, here {description.get(key)}" for key in keys]
        if keys == ["names"]:
            raise UserError("\n".join([f"players of the tournament in {self.path} have other names than when it began:",
                                       *differ, "Put their bot.toml or runs back as they were, or begin in another folder."]))
        if differ:
            raise UserError("\n".join([f"{self.path} holds another tournament:", *differ,
                                       "Name another folder, or go on with that one: wavedash tournament --folder "
                                       f"{self.path}"]))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Makes sure that one process at a time plays the tournament: two would play the same games twice. The system holds the
        lock, so a killed process leaves none behind."""
        lock = FileLock(self.path / ".lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise UserError(f"another process plays the tournament in {self.path}: wait until it is over, or stop it") from None
        except OSError as error:
            raise UserError(f"cannot lock {self.path}: {error.strerror or error}; make room on that disk, and see that the "
                            "folder can be written") from error
        try:
            yield
        finally:
            lock.release()

    def read(self) -> tuple[list[MatchRow], list[Game]]:
        """Returns what counts: whole matches and their games. Games of a match that is not whole are cut off from the file."""
        rows = {row.seed: row for row in self._rows()}  # the last row of a match counts
        games = self.games_file.read()
        counts = Counter(game.seed for game in games)
        strange = next((game for game in games if game.seed not in rows), None)
        if strange is not None:
            raise UserError(f"{self.games_file.path} has a game of {strange.blue} and {strange.orange} that {MATCHES} does not "
                            "know: put the file back as it was, or begin in another folder")
        whole = [game for game in games if counts[game.seed] >= rows[game.seed].games]
        if len(whole) < len(games):
            if games[: len(whole)] != whole:
                raise UserError(f"{self.games_file.path} lacks games: put the file back as it was, or begin in another folder")
            self.games_file.keep(len(whole))
        return [row for row in rows.values() if counts[row.seed] >= row.games], whole

    def add(self, row: MatchRow, games: Sequence[Game]) -> None:
        """Both are on the disk when this returns."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(astuple(row))
        file = self.path / MATCHES
        try:
            with open(file, "ab+") as opened:
                opened.seek(0)
                end = opened.read().rfind(b"\n") + 1  # a torn last line is cut off
                opened.truncate(end)
                opened.write((b"" if end else HEADER.encode() + b"\n") + text.getvalue().encode())
                opened.flush()
                os.fsync(opened.fileno())
            self.games_file.add(games)
        except OSError as error:
            raise UserError(f"cannot write {file}: {error.strerror or error}. Make room, then run the same command again: it "
                            "goes on where it stopped") from error

    def tell(self, faults: Sequence[str]) -> None:
        """Adds what there is to say of bots that failed. A match that is played again after a kill tells it again."""
        if not faults:
            return
        try:
            with open(self.path / FAULTS, "a", encoding="utf-8") as file:
                file.writelines(fault.replace("\n", "\n    ") + "\n" for fault in faults)
        except OSError as error:
            raise UserError(f"cannot write {self.path / FAULTS}: {error.strerror or error}. Make room, then run the same "
                            "command again") from error

    def write(self, name: str, text: str) -> None:
        try:
            replace_file(self.path / name, text.encode())
        except OSError as error:
            raise UserError(f"cannot write {self.path / name}: {error.strerror or error}. Make room, then run the same command "
                            "again") from error

    def _rows(self) -> list[MatchRow]:
        file = self.path / MATCHES
        try:
            text = file.read_bytes()
        except FileNotFoundError:
            return []
        lines = list(csv.reader(io.StringIO(text[: text.rfind(b"\n") + 1].decode("utf-8", errors="replace"))))
        kinds = {"int": int, "str": str}
        try:
            if lines and ",".join(lines[0]) != HEADER:
                raise ValueError("its first line")
            return [MatchRow(*(kinds[str(field.type)](cell) for field, cell in zip(fields(MatchRow), line, strict=True)))
                    for line in lines[1:]]
        except ValueError as error:
            raise UserError(f"{file} holds no matches ({error}): put it back as it was, or begin in another folder") from error
