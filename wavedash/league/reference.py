"""Reference results: games between players that never change, which count together with the games at hand.

The rating of a policy that always beats the chaser follows from the players in between, so it cannot be known better than
theirs. Their games among themselves are the same for everybody: those of the scripts, the champions and some fixed policies
between them (rungs) ship with the package, counted by pair, in champions/reference.csv. A rung is called `rung:NAME`, and any
folder whose weights have its checksum (champions/rungs.csv) is that player, whatever the folder is called.
"""
from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

from wavedash import champions
from wavedash.errors import UserError
from wavedash.league.games import Game, GamesFile
from wavedash.league.ratings import ANCHORS, Rating, Results, rate
from wavedash.runs.policy_folder import PolicyFolder

FILE = champions.FOLDER / "reference.csv"
RUNGS = champions.FOLDER / "rungs.csv"
RUNG = "rung:"
SHIPPED = "shipped"
"""What stands for the results of the package where files of games are named"""


@dataclass(frozen=True)
class Row:
    """All games of two players in one simulator."""

    player: str
    opponent: str
    won: int
    """By the player"""
    drawn: int
    lost: int
    simulator: str
    size: int
    """Cars per team"""
    seconds: float
    """A game without a goal ended as a draw after so long; 0: no game of the file was drawn"""

    @property
    def games(self) -> int:
        return self.won + self.drawn + self.lost

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> Row:
        """ValueError: they are no results of two players."""
        kinds = {"int": int, "float": float, "str": str}
        row = cls(*(kinds[str(field.type)](text) for field, text in zip(fields(cls), texts, strict=True)))
        if row.player == row.opponent or min(row.won, row.drawn, row.lost) < 0:
            raise ValueError("a player plays itself" if row.player == row.opponent else "a count is negative")
        return row


HEADER = [field.name for field in fields(Row)]


@dataclass(frozen=True)
class Reference:
    """Reference results of any source."""

    rows: Sequence[Row] = ()

    def plus(self, more: Iterable[Row]) -> Reference:
        return Reference([*self.rows, *more])

    def among(self, players: Iterable[str], where: Collection[tuple[str, int]], limits: Collection[float]) -> Results:
        """The results that tell something about these players, who play in these simulators with so many cars per team: those
        of games with the same limits of time that have a chain of games to one of the players. A chain does not go on at an
        anchor: its rating is known anyway."""
        rows = [row for row in self.rows if (row.simulator, row.size) in where
                and all(not row.seconds or abs(row.seconds - limit) < 1.0 for limit in limits)]
        pairs, reached, before = [{row.player, row.opponent} for row in rows], set(players) - ANCHORS.keys(), -1
        while before != len(reached):
            before = len(reached)
            reached = reached.union(*(pair for pair in pairs if pair & reached)) - ANCHORS.keys()
        return results_of([row for row, pair in zip(rows, pairs, strict=True) if pair & reached])

    def left_out(self, players: Iterable[str], where: Collection[tuple[str, int]], limits: Collection[float]) -> str | None:
        """Says why none of the results counts, if that is only because of the limit of time; else None."""
        players = list(players)
        if self.among(players, where, limits).games or not self.among(players, where, ()).games:
            return None
        theirs = sorted({row.seconds for row in self.rows if row.seconds and (row.simulator, row.size) in where})
        return (f"reference games do not count: without a goal they end after {_seconds(theirs)}, those at hand after "
                f"{_seconds(sorted(limits))}")

    def among_games(self, games: Sequence[Game]) -> Results:
        """`among` for the players of these games."""
        return self.among(*_played(games))

    def left_out_of_games(self, games: Sequence[Game]) -> str | None:
        """`left_out` for the players of these games."""
        return self.left_out(*_played(games))


NO_REFERENCE = Reference()


def rate_among(results: Results, reference: Results, anchors: dict[str, float]) -> dict[str, Rating]:
    """The ratings of the players of `results` by the games of both; the games that are told are those of `results`."""
    ratings = rate(results.plus(reference), anchors)
    own = results.played.sum(1)
    return {player: ratings[player]._replace(games=int(count)) for player, count in zip(results.players, own, strict=True)}


def results_of(rows: Sequence[Row]) -> Results:
    players = sorted({player for row in rows for player in (row.player, row.opponent)})
    index = {player: i for i, player in enumerate(players)}
    wins, draws = np.zeros((2, len(players), len(players)))
    for row in rows:
        i, j = index[row.player], index[row.opponent]
        wins[i, j] += row.won
        wins[j, i] += row.lost
        draws[[i, j], [j, i]] += row.drawn
    return Results(players, wins, draws)


def count(games: Iterable[Game]) -> list[Row]:
    """Games counted by pair, in the order of the names."""
    games = list(games)
    counts: dict[tuple[str, str, str, int], tuple[int, int, int]] = {}
    for game in games:
        ahead = game.blue_goals - game.orange_goals
        if game.blue > game.orange:
            ahead = -ahead
        pair = min(game.blue, game.orange), max(game.blue, game.orange)
        won, drawn, lost = counts.get((*pair, game.simulator, game.size), (0, 0, 0))
        counts[*pair, game.simulator, game.size] = won + (ahead > 0), drawn + (ahead == 0), lost + (ahead < 0)
    limit = max(drawn_after(games), default=0.0)
    return [Row(player, opponent, *counts[player, opponent, simulator, size], simulator, size, limit)
            for player, opponent, simulator, size in sorted(counts)]


def drawn_after(games: Iterable[Game]) -> set[float]:
    """After how many whole seconds games were drawn."""
    return {float(round(game.seconds)) for game in games if game.blue_goals == game.orange_goals}


def _played(games: Sequence[Game]) -> tuple[set[str], set[tuple[str, int]], set[float]]:
    """Returns who played, where, and with which limits of time."""
    players = {player for game in games for player in (game.blue, game.orange)}
    return players, {(game.simulator, game.size) for game in games}, drawn_after(games)


def _seconds(limits: Sequence[float]) -> str:
    return " and ".join(f"{limit:g}" for limit in limits) + " s"


def shipped(path: Path | None = None) -> Reference:
    """The reference results of the package. UserError: the file is damaged."""
    path, rows = path or FILE, []
    for number, row in _rows(path, HEADER):
        try:
            rows.append(Row.from_texts(row))
        except ValueError as error:
            raise UserError(f"{path}, line {number}, holds no results of two players ({error}): {','.join(row)[:80]}. "
                            f"{_AGAIN}") from error
    return Reference(rows)


def read_references(sources: Iterable[str]) -> Reference:
    """Joins the results of the package, where a source is `shipped`, and the games of files. UserError: one is missing or
    damaged."""
    found = Reference()
    for source in sources:
        if source == SHIPPED:
            found = found.plus(shipped().rows)
        elif games := GamesFile(Path(source)).read():
            found = found.plus(count(games))
        else:
            what = "holds no games to rate with" if Path(source).exists() else "does not exist"
            raise UserError(f"{source} {what}: name a games.csv, as `wavedash tournament --out` writes it")
    return found


def rungs(path: Path | None = None) -> dict[str, str]:
    """Names of rungs by the SHA-256 of their weights."""
    path, found = path or RUNGS, {}
    for number, row in _rows(path, ["name", "sha256"]):
        if len(row) != 2 or len(row[1]) != 64 or not row[0].startswith(RUNG):
            raise UserError(f"{path}, line {number}, holds no rung and its checksum: {','.join(row)[:80]}. {_AGAIN}")
        found[row[1]] = row[0]
    return found


def rung_name(folder: PolicyFolder) -> str | None:
    """The name of the rung that this folder holds; None: it holds another policy."""
    return rungs().get(folder.sha256)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode()


def as_bytes(rows: Iterable[Row]) -> bytes:
    return table(HEADER, (astuple(row) for row in rows))


_AGAIN = "It came with the package: install that again, or leave reference results out"


def _rows(path: Path, header: list[str]) -> list[tuple[int, list[str]]]:
    try:
        lines = list(enumerate(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))), start=1))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"cannot read {path}: {error}. {_AGAIN}") from error
    if not lines or lines[0][1] != header:
        raise UserError(f"{path} holds no reference results: its first line is not {','.join(header)}. {_AGAIN}")
    return lines[1:]
