"""The ladder: all versions of one or several runs, rated together over all of their games.

A run that rates itself writes its games into games.csv of its folder; a version of it is called `NAME@STEPS` there. Runs are
comparable because they have met the same fixed players.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from wavedash.errors import UserError
from wavedash.league.games import Game, GamesFile
from wavedash.league.ratings import Rating, Results, anchors_among, scale_of
from wavedash.league.reference import NO_REFERENCE, Reference, rate_among
from wavedash.league.standings import rating_table, reference_line, strongest_first
from wavedash.runs.events import EventsFile, in_words
from wavedash.runs.find import runs_under
from wavedash.runs.folder import RunError, RunFolder, runs_root

GAMES = "games.csv"


class Version(NamedTuple):
    """A run after so many steps."""

    run: str
    steps: int

    @classmethod
    def of(cls, player: str) -> Version | None:
        """None: the player is no version of a run."""
        found = re.fullmatch(r"(.+)@(\d+)", player)
        return cls(found[1], int(found[2])) if found else None

    def __str__(self) -> str:
        return f"{self.run}@{self.steps}"


class Mark(NamedTuple):
    """Something that was done to a run: a setting that was changed while it ran, an order, a milestone."""

    run: str
    steps: int
    what: str


@dataclass(frozen=True)
class Ladder:
    """Games of runs; `str()` is what `wavedash ladder` prints."""

    games: Sequence[Game]
    reference: Reference = NO_REFERENCE
    """Results that count too where its players take part"""
    marks: Sequence[Mark] = ()
    """What the chart marks"""

    @cached_property
    def results(self) -> Results:
        return Results.of(self.games)

    @cached_property
    def anchors(self) -> dict[str, float]:
        return anchors_among([*self.results.players, *self._reference.players])

    @cached_property
    def ratings(self) -> dict[str, Rating]:
        """The ratings of all players, the strongest first."""
        return strongest_first(rate_among(self.results, self._reference, self.anchors))

    @cached_property
    def runs(self) -> dict[str, dict[int, Rating]]:
        """Runs with several versions: their ratings by steps, in the order of the steps."""
        found: dict[str, dict[int, Rating]] = {}
        for version, rating in sorted((version, rating) for player, rating in self.ratings.items()
                                      if (version := Version.of(player)) is not None):
            found.setdefault(version.run, {})[version.steps] = rating
        return {run: versions for run, versions in found.items() if len(versions) > 1}

    @cached_property
    def fixed(self) -> dict[str, Rating]:
        """All other players: scripts, and policies of which one version played."""
        return {player: rating for player, rating in self.ratings.items()
                if (version := Version.of(player)) is None or version.run not in self.runs}

    def as_json(self) -> dict[str, Any]:
        return {
            "games": len(self.games), "reference_games": self._reference.games, "scale": scale_of(self.anchors),
            "ratings": [{"player": player, **rating._asdict()} for player, rating in self.ratings.items()],
            "runs": {run: [{"steps": steps, **rating._asdict()} for steps, rating in versions.items()]
                     for run, versions in self.runs.items()},
        }

    def __str__(self) -> str:
        played = {simulator: sum(game.simulator == simulator for game in self.games)
                  for simulator in sorted({game.simulator for game in self.games})}
        of = " and ".join(f"{count} in {simulator}" for simulator, count in played.items())
        return "\n".join([f"{len(self.games)} games: {of}", f"ratings: {scale_of(self.anchors)}",
                          *reference_line(self._reference.games, self.reference.left_out_of_games(self.games)), "",
                          *rating_table(self.results, self.ratings, self.anchors)])

    @cached_property
    def _reference(self) -> Results:
        return self.reference.among_games(self.games)


def read_ladder(files: Sequence[Path], reference: Reference = NO_REFERENCE, size: int | None = None) -> Ladder:
    """The ladder of the games in these files, of one run each. If two runs have the same name, their versions are called by the
    folders of the runs. `size`: of games with so many cars per team only. UserError: there are no games, or those of different
    sizes of teams."""
    files = list({file.resolve(): file for file in files}.values())  # games of a file that is named twice count once
    games = [GamesFile(file).read() for file in files]
    played = sorted({game.size for its in games for game in its})
    if size is not None:
        games = [[game for game in its if game.size == size] for its in games]
    for file, its in zip(files, games, strict=True):
        if not its and size in (None, *played):
            raise UserError(f"{file} holds no games{'' if size is None else f' in {size}v{size}'} yet: wait until the run has "
                            "rated itself for the first time")
        if not its:
            raise UserError(f"{file} holds no games in {size}v{size}: those that were played are in {_named(played)}")
    if size is None and len(played) > 1:
        raise UserError(f"no common ratings of games in {_named(played)}: a player may be strong in one and weak in the other. "
                        f"Name runs and files of one size of teams, or choose the games of one, such as --size {played[-1]}")
    learners = [_learners(its) for its in games]
    renamed, marks = [], list[Mark]()
    for i, (file, its) in enumerate(zip(files, games, strict=True)):
        shared = {run for run in learners[i] if any(run in others for j, others in enumerate(learners) if j != i)}
        folder = file.absolute().parent.name
        renamed += [replace(game, blue=_renamed(game.blue, shared, folder), orange=_renamed(game.orange, shared, folder))
                    for game in its]
        marks += [mark._replace(run=folder if run in shared else run) for run in sorted(learners[i])
                  for mark in _marks(RunFolder(file.absolute().parent))]
    return Ladder(renamed, reference, marks)


def _named(sizes: Sequence[int]) -> str:
    return " and ".join(f"{size}v{size}" for size in sizes) or "no size"


def find_games(path: str | Path | None = None) -> Path:
    """The games.csv that a user means: a file, that of a run, of the newest run in a folder that has one or, without a path, of
    the newest run. RunError: there is none."""
    if path is not None and Path(path).is_file():
        return Path(path)
    folder = runs_root() if path is None else Path(path)
    runs = [RunFolder(folder)] if RunFolder.is_run(folder) else runs_under(folder)
    for run in runs:
        if (run.path / GAMES).is_file():
            return run.path / GAMES
    if not runs:
        what = "no run found at" if folder.exists() else "there is no file or folder"
        raise RunError(f"{what} {folder.absolute()}; name a run folder, or a file of games")
    looked = "".join(f"\n  {run.path}: no {GAMES}" for run in runs)
    raise RunError(f"no rated games at {folder.absolute()}; looked at:{looked}\n"
                   "A run rates itself while it trains if its configuration has a section `rating`")


def _learners(games: Sequence[Game]) -> set[str]:
    """The runs that played these games: a game is played at the step of the version that learns."""
    versions = ((Version.of(player), game.step) for game in games for player in (game.blue, game.orange))
    return {version.run for version, step in versions if version is not None and version.steps == step}


def _marks(run: RunFolder) -> list[Mark]:
    """Returns what was done to a run; nothing where the games are not in the folder of one."""
    milestones = [Mark("", one.checkpoint.step, f"milestone {one.full_name}") for one in run.milestones.listed()[0]]
    events = [Mark("", row["step"], said) for row in EventsFile(run.events).rows()
              if row.get("key") != "milestone" and (said := in_words(row)) is not None]
    return sorted(milestones + events)


def _renamed(player: str, runs: set[str], folder: str) -> str:
    version = Version.of(player)
    return player if version is None or version.run not in runs else str(Version(folder, version.steps))
