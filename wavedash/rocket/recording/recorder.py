"""GameRecorder: whole games of a match or an evaluation become files, while they are played.

Which games these are is decided before anything is played: the first ones of some arenas. So short games are not favoured, and
all games are the same as without a recorder.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from wavedash.recordings.order import Order
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.recording.episodes import Episode, Episodes, RawEpisode
from wavedash.rocket.recording.events import TEAMS
from wavedash.rocket.recording.frames import RocketFrames, players_of
from wavedash.rocket.recording.make import recording_of
from wavedash.rocket.recording.tape import make_tape

MOST_ARENAS = 64
"""Arenas that are recorded at the same time, of all that play the same match"""
STEPS = 32
"""Steps between two looks at the tapes"""


class Pairing(NamedTuple):
    """Who plays in an arena."""

    title: str
    names: Sequence[str]
    """Of every seat"""
    policies: Sequence[bool]
    """Seats of trained policies"""


class GameRecorder:
    """Records games of one environment, which may be played again after `begin`."""

    def __init__(self, order: Order, source: str, pairing: Callable[[int, int], Pairing], scene: dict[str, Any],
                 **more: Any) -> None:
        """`pairing` is asked for by the number of a block and an arena. `more`: `run` and `step` of headers."""
        self.order, self.source, self.pairing, self.scene, self.more = order, source, pairing, scene, more
        self._shards: list[_Followed] = []
        self._places: dict[int, _Place] = {}
        """By arena"""
        self._played: dict[int, int] = {}
        self._since = 0

    def attach(self, env: RocketEnv, blocks: Sequence[Sequence[int]], rounds: int, steps: int = STEPS) -> None:
        """Follows games in the first arenas of every block; of each block, as many games are recorded as were asked for.
        `rounds`: games of every arena; `steps`: the most between two looks."""
        self.ticks, self.rounds, self.steps = round(env.step_seconds * TICK_RATE), rounds, steps
        for number, block in enumerate(blocks):
            chosen = block[:min(MOST_ARENAS, self.order.games or MOST_ARENAS)]
            self._places |= {arena: _Place(number, place, len(chosen)) for place, arena in enumerate(chosen)}
        first, tapes = 0, []
        for state in env.states:
            mine = [arena - first for arena in self._places if first <= arena < first + state.arenas]
            tape = make_tape(state, mine, steps) if mine else None
            if tape is not None:
                nobody = players_of(state, 0, [""] * state.seats)
                self._shards.append(_Followed(Episodes(tape, first), RocketFrames.of(state), nobody))
            tapes.append(tape)
            first += state.arenas
        env.attach(tapes)
        self.begin()

    def begin(self) -> None:
        """All games begin anew."""
        self._played, self._since = dict.fromkeys(self._places, 0), 0
        for shard in self._shards:
            shard.episodes.forget()

    def stepped(self, steps: int = 1) -> None:
        """So many steps were made since the last call, and as many will be until the next."""
        self._since += steps
        if self._since + steps > self.steps:
            self.look()

    def look(self) -> None:
        """Writes the games that have ended. This is a host sync."""
        self._since = 0
        for shard in self._shards:
            for episode in shard.episodes.read():
                self._end(episode, shard.frames, shard.nobody)
            shard.episodes.compact(shard.frames)

    def _end(self, raw: RawEpisode, frames: RocketFrames, nobody: list[dict[str, Any]]) -> None:
        played, place = self._played[raw.arena], self._places[raw.arena]
        self._played[raw.arena] += 1
        number = played * place.among + place.number
        if played >= self.rounds or (self.order.games is not None and number >= self.order.games):
            return
        title, names, policies = self.pairing(place.block, raw.arena)
        episode = raw.encoded(frames)
        players = [{**player, "name": names[seat], "policy": policies[seat]}
                   for player, seat in zip(nobody, frames.seats, strict=True)]
        numbered = f"{title}, game {self.order.next_number}"
        self.order.write(recording_of(episode, players, frames, numbered, self.source, self.ticks, end=_result(episode),
                                      scene=self.scene, **self.more), title)


class _Followed(NamedTuple):
    """What is followed of a shard."""

    episodes: Episodes
    frames: RocketFrames
    nobody: list[dict[str, Any]]
    """The players of its arenas without their names"""


class _Place(NamedTuple):
    """An arena in its block: the block, and which of how many it is."""

    block: int
    number: int
    among: int


def _result(episode: Episode) -> str:
    goals = episode.records["score"][-1].tolist()
    if goals[0] == goals[1]:
        return f"the end: {goals[0]}-{goals[1]}"
    return f"{TEAMS[goals[1] > goals[0]]} wins {max(goals)}-{min(goals)}"
