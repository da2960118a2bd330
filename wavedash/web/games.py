"""Game: what a stage is asked to play, and which game is shown before anybody has chosen one."""
from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wavedash.errors import UserError
from wavedash.web.players import Player, Players
from wavedash.web.run import Run, kind_name, team_size

SIMULATORS = ("rocketsim", "warp")
SIZES = (1, 2, 3)
START = re.compile(r"[a-z0-9_]{1,40}(:[0-9]{1,3})?")


@dataclass(frozen=True)
class Game:
    """Who plays whom, and how."""

    blue: Player
    orange: Player
    size: int = 1
    simulator: str = "rocketsim"
    start: str = "kickoff"
    deterministic: bool = True

    def __post_init__(self) -> None:
        """Raises UserError where something is none of the few words that it can be."""
        if type(self.size) is not int or self.size not in SIZES:
            raise UserError(f"size must be {', '.join(map(str, SIZES[:-1]))} or {SIZES[-1]}")
        if self.simulator not in SIMULATORS:
            raise UserError(f"simulator must be {' or '.join(SIMULATORS)}")
        if not isinstance(self.start, str) or not START.fullmatch(self.start):
            raise UserError("start must be the name of a start, such as kickoff")
        if self.deterministic not in (True, False):
            raise UserError("deterministic must be true or false")

    @property
    def who(self) -> dict[str, str]:
        return {"blue": self.blue.name, "orange": self.orange.name}

    @property
    def followed(self) -> dict[str, int | None]:
        """Returns, by side, the steps of those who follow a run."""
        return {side: player.step for side, player in (("blue", self.blue), ("orange", self.orange)) if player.follows}

    def asked(self) -> dict[str, Any]:
        """Returns what a stage is asked for."""
        return {"blue": self.blue.source, "orange": self.orange.source, "size": self.size, "simulator": self.simulator,
                "start": self.start, "deterministic": self.deterministic}

    def renewed(self, players: Players) -> Game:
        """The same game, in which whoever follows a run is its newest checkpoint of now."""
        blue, orange = (players.renewed(player) for player in (self.blue, self.orange))
        return self if (blue, orange) == (self.blue, self.orange) else replace(self, blue=blue, orange=orange)


def read_game(players: Players, command: Mapping[str, Any]) -> Game:
    """The game that a client asks for by the ids of its players. UserError: it cannot be played."""
    sides = [command.get(side) for side in ("blue", "orange")]
    if not all(isinstance(id, str) for id in sides):
        raise UserError("blue and orange must be ids of players")
    blue, orange = (players.find(str(id)) for id in sides)
    chosen = {name: command[name] for name in ("size", "simulator", "start", "deterministic") if name in command}
    return Game(blue, orange, **chosen)


def game_of(players: Players, run: Run) -> Game:
    """The newest policy of a run against itself, in teams as it was trained. UserError: it has none yet."""
    config = run.config()
    player = players.newest(run)
    if player is None:
        raise UserError(f"{run.title} has no checkpoint yet: its first one is shown when it is saved")
    if player.refused is not None:
        raise UserError(player.refused)
    size = team_size(config) if kind_name(config) == "rocket" else None
    return Game(player, player, size if size in SIZES else 1)


def first_game(players: Players) -> Game:
    """The newest run that has a policy against itself; where there is none, the champion against itself."""
    for run in players.library.runs():
        with suppress(UserError):
            if kind_name(run.config()) != "other":  # others have curves, but nothing that could be shown
                return game_of(players, run)
    champion = players.champion()
    return Game(champion, champion)


class Wanted:
    """What a user wants to watch by the words after `wavedash watch`: a run, one or two players, or nothing in particular.
    UserError: a word means nothing."""

    def __init__(self, players: Players, words: Sequence[str], size: int | None = None, simulator: str = "rocketsim",
                 start: str = "kickoff", deterministic: bool = True) -> None:
        self._all, self._size = players, size
        self._chosen: dict[str, Any] = {"simulator": simulator, "start": start, "deterministic": deterministic}
        self._run: Run | None = None
        self._players: list[Player] = []
        names = [word for word in words if word.lower() not in ("vs", "vs.")]
        if len(names) > 2:
            raise UserError(f"one or two players can be watched, not {len(names)}: {', '.join(names)}")
        if len(names) == 1 and Path(names[0]).exists():
            self._run = players.library.run_named(Path(names[0]))
        if self._run is None:
            self._players = [players.named(name, size) for name in names]
        nobody = Player("", "", "", "")
        Game(nobody, nobody, size or 1, **self._chosen)  # says at once which option is wrong

    def run(self) -> str | None:
        """The id of the run to show first."""
        if self._run is not None:
            return self._run.id
        named = [player.run for player in self._players if player.run is not None]
        newest = [] if self._players else [run.id for run in self._all.library.runs()[:1]]
        return next(iter([*named, *newest]), None)

    @property
    def who(self) -> dict[str, str] | None:
        """The names of both players, where the user has named players."""
        return {"blue": self._players[0].name, "orange": self._players[-1].name} if self._players else None

    @property
    def title(self) -> str:
        """Says what is watched, for the terminal."""
        if self._run is not None:
            return self._run.title
        return " vs ".join(dict.fromkeys(player.name for player in self._players)) or "runs and games"

    def game(self) -> Game:
        """The game to begin with. UserError: it cannot be played yet."""
        if self._players:
            blue, orange = self._players[0], self._players[-1]
            for player in (blue, orange):
                if player.refused is not None:
                    raise UserError(player.refused)
            sizes = [player.size for player in (blue, orange) if player.size in SIZES]
            found = Game(blue, orange, next(iter(sizes), 1))
        else:
            found = first_game(self._all) if self._run is None else game_of(self._all, self._run)
        return replace(found, size=self._size or found.size, **self._chosen)


class Trained:
    """What is shown beside a training: the run that a process trains, once it does, and its newest checkpoint."""

    def __init__(self, players: Players, pid: int) -> None:
        self._all, self._holder = players, f"process {pid} on {socket.gethostname()}"

    def run(self) -> str | None:
        found = self._found()
        return None if found is None else found.id

    def game(self) -> Game:
        run = self._found()
        if run is None:
            raise UserError("the training prepares itself: its first checkpoint is shown when it is saved")
        return game_of(self._all, run)

    def _found(self) -> Run | None:
        return next((run for run in self._all.library.runs() if run.folder.holder == self._holder), None)
