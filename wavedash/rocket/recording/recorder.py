"""GameRecorder: whole games of a match or an evaluation become files, while they are played.

Which games these are is decided before anything is played: the first ones of some arenas. So short games are not favoured, and
all games are the same as without a recorder.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from wavedash.errors import UserError
from wavedash.recordings.layout import RecordingError
from wavedash.recordings.names import file_name, stamp
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.recording.episodes import Episode, Episodes
from wavedash.rocket.recording.events import TEAMS
from wavedash.rocket.recording.frames import RocketFrames, players_of
from wavedash.rocket.recording.make import recording_of
from wavedash.rocket.recording.tape import Tape

MOST_ARENAS = 64
"""Arenas that are recorded at the same time, of all that play the same match"""
STEPS = 32
"""Steps between two looks at the tapes"""


@dataclass(frozen=True)
class Order:
    """What a user asked to be recorded."""

    games: int | None
    """How many; None: all"""
    folder: Path

    @classmethod
    def read(cls, asked: str | None, folder: Path) -> Order | None:
        """The order of `--record N|all`. UserError: it is none, or the folder cannot be made."""
        if asked is None:
            return None
        if asked != "all" and not (asked.isascii() and asked.isdigit() and int(asked[:9]) > 0 and len(asked) < 10):
            raise UserError(f"--record takes a number of games, or all, not {asked!r}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot make the folder {folder} for recordings: {error.strerror or error}; name another one with "
                            "--recordings") from error
        return cls(None if asked == "all" else int(asked), folder)


class Pairing(NamedTuple):
    """Who plays in an arena."""

    title: str
    names: Sequence[str]
    """Of every seat"""
    policies: Sequence[bool]
    """Seats of trained policies"""


class GameRecorder:
    """Records games of one environment, which may be played again after `begin`."""

    def __init__(self, order: Order, source: str, pairing: Callable[[int], Pairing], scene: dict[str, Any],
                 **more: Any) -> None:
        """`pairing` is asked for by arena. `more`: `run` and `step` of headers."""
        self.order, self.source, self.pairing, self.scene, self.more = order, source, pairing, scene, more
        self.files: list[Path] = []
        self.failure: RecordingError | None = None
        """Why it has stopped recording. The games go on: their results are worth more."""
        self._shards: list[tuple[Episodes, list[dict[str, Any]]]] = []
        """What is followed of every shard, and the players of its arenas without their names"""
        self._places: dict[int, tuple[int, int]] = {}
        """By arena, its place among those of its block, and how many there are"""
        self._played: dict[int, int] = {}
        self._made, self._since = stamp(), 0

    def attach(self, env: RocketEnv, blocks: Sequence[range], rounds: int, steps: int = STEPS) -> None:
        """Follows games in the first arenas of every block; of each block, as many games are recorded as were asked for.
        `rounds`: games of every arena; `steps`: the most between two looks."""
        self.ticks, self.rounds, self.steps = round(env.step_seconds * TICK_RATE), rounds, steps
        for block in blocks:
            chosen = block[:min(MOST_ARENAS, self.order.games or MOST_ARENAS)]
            self._places |= {arena: (place, len(chosen)) for place, arena in enumerate(chosen)}
        first, tapes = 0, []
        for state in env.states:
            mine = [arena - first for arena in self._places if first <= arena < first + state.arenas]
            tape = Tape(state, mine, steps) if mine else None
            if tape is not None:
                nobody = players_of(state, 0, [""] * state.seats)
                self._shards.append((Episodes(tape, RocketFrames.of(state), first), nobody))
            tapes.append(tape)
            first += state.arenas
        env.attach(tapes)
        self.begin()

    def begin(self) -> None:
        """All games begin anew."""
        self._played, self._since = dict.fromkeys(self._places, 0), 0
        for episodes, _ in self._shards:
            episodes.forget()

    def stepped(self, steps: int = 1) -> None:
        """So many steps were made since the last call, and as many will be until the next."""
        self._since += steps
        if self._since + steps > self.steps:
            self.look()

    def look(self) -> None:
        """Writes the games that have ended. This is a host sync."""
        self._since = 0
        for episodes, nobody in self._shards:
            for episode in episodes.read():
                self._end(episode, episodes.frames, nobody)

    def _end(self, episode: Episode, frames: RocketFrames, nobody: list[dict[str, Any]]) -> None:
        round_number = self._played[episode.arena]
        self._played[episode.arena] += 1
        place, count = self._places[episode.arena]
        number = round_number * count + place
        if self.failure is not None or round_number >= self.rounds or number >= (self.order.games or number + 1):
            return
        title, names, policies = self.pairing(episode.arena)
        players = [{**player, "name": names[seat], "policy": policies[seat]}
                   for player, seat in zip(nobody, frames.seats, strict=True)]
        recording = recording_of(episode, players, frames, f"{title}, game {number + 1}", self.source, self.ticks,
                                 end=_result(episode), scene=self.scene, **self.more)
        name = file_name(title, f"{self._made}-{len(self.files) + 1:03d}")
        try:
            self.files.append(recording.write(self.order.folder / name))
        except RecordingError as error:
            self.failure = error


def _result(episode: Episode) -> str:
    goals = episode.records["score"][-1].tolist()
    if goals[0] == goals[1]:
        return f"the end: {goals[0]}-{goals[1]}"
    return f"{TEAMS[goals[1] > goals[0]]} wins {max(goals)}-{min(goals)}"
