"""Moments of an episode that are worth keeping: goals, saves, rallies, and mechanics that succeeded.

Every moment has a score by which those of one kind are compared: the speed of the ball in km/h, the touches of a rally, the
successes of a mechanic.
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wavedash.rocket.recording.episodes import Episode, RawEpisode
from wavedash.rocket.recording.frames import POSITION
from wavedash.rocket.state import WORD, GameState

LONGEST = 20.0
"""Seconds of the longest moment"""
AFTER = 2.0
"""Seconds that are shown after what happened"""
BEFORE_SAVE, BEFORE_MECHANIC, BEFORE_RALLY = 8.0, 10.0, 2.0
"""Seconds that are shown before it"""
SHORTEST_RALLY = 4
"""Touches of a rally"""
KINDS = ("goal", "save", "rally")
KMH = 0.036
"""km/h of 1 uu/s, as 1 uu is 1 cm"""


class Moment(NamedTuple):
    """A part of an episode."""

    kind: str
    """Of `KINDS`, or the name of a measure"""
    score: int
    shown: tuple[int, int]
    """The first and the last frame"""
    title: str


def may_have_moments(raw: RawEpisode) -> bool:
    """Whether it is worth to make frames of an episode. This looks at single words of the rows, which takes no time."""
    seats = raw.success.shape[2]
    flags = raw.rows.view(np.uint8)[:, _flags(seats)]  # [F, 2 S]
    touches = raw.rows[:, _touches(seats)].any(-1)  # [F]
    return bool(flags.any() or raw.success.any() or np.count_nonzero(touches) >= SHORTEST_RALLY)


@cache
def _flags(seats: int) -> list[int]:
    """Bytes of a row that say that a car has scored or saved."""
    return [at + seat * stride for part, name, _, _, at, stride in GameState.layout(seats)
            if part == "events" and name in ("goal", "save") for seat in range(seats)]


@cache
def _touches(seats: int) -> list[int]:
    """Words of a row that count the touches of cars."""
    return [(at + seat * stride) // WORD for part, name, _, _, at, stride in GameState.layout(seats)
            if (part, name) == ("events", "touches") for seat in range(seats)]


class _Window:
    """Cuts parts out of an episode, by seconds."""

    def __init__(self, frames: int, frame_seconds: float) -> None:
        self.frames, self.frame_seconds = frames, frame_seconds

    def long(self, seconds: float) -> int:
        """How many frames take so long."""
        return round(seconds / self.frame_seconds)

    def around(self, frame: int, before: float, after: float = AFTER) -> tuple[int, int]:
        return max(0, frame - self.long(before)), min(self.frames - 1, frame + self.long(after))


def find_moments(episode: Episode, teams: Sequence[int], frame_seconds: float, measures: Sequence[str] = ()) -> list[Moment]:
    """The best moment of each kind, of those that there are. `teams`: of every car."""
    window = _Window(episode.frames, frame_seconds)
    found = [*_goal(episode, window), *_save(episode, window), *_rally(episode, np.asarray(teams), window)]
    for number, name in enumerate(measures):
        found += _mechanic(name, episode.happened["success"][:, number].any(-1), window)
    return found


def _goal(episode: Episode, window: _Window) -> Iterator[Moment]:
    """The goal of the fastest ball, of those that a car has scored."""
    goals = {frame: _speed(episode, frame) for frame in np.flatnonzero(episode.happened["goal"].any(-1)).tolist()}
    if goals:
        frame = max(goals, key=lambda frame: goals[frame])
        yield Moment("goal", goals[frame], window.around(frame, LONGEST, 0.0), f"a goal at {goals[frame]} km/h")


def _save(episode: Episode, window: _Window) -> Iterator[Moment]:
    """The save of the fastest ball. Its speed is that of the frame before."""
    saves = np.flatnonzero(episode.happened["save"].any(-1))
    shots = {frame: _speed(episode, frame - 1) for frame in saves.tolist() if frame > 0}
    if shots:
        frame = max(shots, key=lambda frame: shots[frame])
        yield Moment("save", shots[frame], window.around(frame, BEFORE_SAVE), f"a save of a ball at {shots[frame]} km/h")


def _rally(episode: Episode, teams: NDArray[Any], window: _Window) -> Iterator[Moment]:
    """The most touches of teams in turns, within the time of a moment. A step in which both touch is nobody's turn."""
    touching = np.stack([episode.happened["touch"][:, teams == team].any(-1) for team in (0, 1)], -1)  # [F, 2]
    touches = np.flatnonzero(touching.sum(-1) == 1)
    team = touching[touches, 1]
    turns = touches[np.append(True, team[1:] != team[:-1])] if len(touches) else touches
    if len(turns) < SHORTEST_RALLY:
        return
    longest = window.long(LONGEST - BEFORE_RALLY - AFTER)
    first = np.searchsorted(turns, turns - longest)  # of each turn, the earliest one that is shown with it
    count = np.arange(len(turns)) - first + 1
    best = int(count.argmax())
    if count[best] >= SHORTEST_RALLY:
        shown = window.around(int(turns[first[best]]), BEFORE_RALLY)[0], window.around(int(turns[best]), 0.0)[1]
        yield Moment("rally", int(count[best]), shown, f"a rally of {count[best]} touches")


def _mechanic(name: str, succeeded: NDArray[np.bool_], window: _Window) -> Iterator[Moment]:
    """The last success, which is shown with those before it."""
    if succeeded.any():
        first, last = window.around(int(np.flatnonzero(succeeded)[-1]), BEFORE_MECHANIC)
        count, title = int(succeeded[first:last + 1].sum()), name.replace("_", " ")
        kind = re.sub(r"[^a-z0-9_]+|^[^a-z]+", "x", name.lower())  # it is part of the name of a file
        yield Moment(kind, count, (first, last), title if count == 1 else f"{title}, {count} times")


def _speed(episode: Episode, frame: int) -> int:
    """km/h of the ball."""
    return round(float(np.linalg.norm(episode.records["ball.velocity"][frame].astype(float))) * POSITION * KMH)
