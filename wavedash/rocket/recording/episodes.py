"""Episodes: what was read from a tape, cut where episodes begin and end, as frames and what happened in them."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from wavedash.recordings.layout import Records
from wavedash.rocket.recording.events import Happened, happened_in, nothing_happened, with_success
from wavedash.rocket.recording.frames import RocketFrames
from wavedash.rocket.recording.tape import Strip, Tape
from wavedash.rocket.state import WORD, GameState

MANY = 256
"""Rows of an open episode that are worth to be made smaller"""


@dataclass(frozen=True)
class Episode:
    """Frames of one arena without a gap."""

    arena: int
    records: Records
    """[F]"""
    happened: Happened
    """[F]: what happened in the step before each frame"""
    policy: NDArray[np.bool_]
    """[C]: the cars that the policy drove"""
    whole: bool
    """Whether the first frame is the beginning of the episode"""

    @property
    def frames(self) -> int:
        return len(self.records)

    def part(self, first: int, last: int) -> Episode:
        """The frames from the first to the last one, which is part of it."""
        begins = max(0, first)
        return Episode(self.arena, self.records[begins:last + 1], self.happened[begins:last + 1], self.policy,
                       self.whole and begins == 0)


@dataclass(frozen=True)
class RawEpisode:
    """An episode as the tape had it. To make frames of it takes longer than to keep it, and few are looked at."""

    arena: int
    rows: NDArray[np.int32]
    """[F, W]: records of the game state"""
    success: NDArray[np.bool_]
    """[F, M, S]: attempts that succeeded in the step before each frame, by measure and seat"""
    policy: NDArray[np.bool_]
    """[S]: the seats that the policy drove"""
    whole: bool
    before: Episode | None = None
    """Frames that come before these"""

    @property
    def frames(self) -> int:
        return len(self.rows) + (0 if self.before is None else self.before.frames)

    def encoded(self, frames: RocketFrames) -> Episode:
        state = GameState.over(torch.from_numpy(self.rows), self.success.shape[2])
        records, happened = frames.records(state), happened_in(state, frames)
        if self.success.shape[1]:
            happened = with_success(happened, self.success[..., frames.seats])
        if self.before is not None:
            records = np.concatenate([self.before.records, records])
            happened = np.concatenate([self.before.happened, happened])
        elif self.whole:
            happened[:1] = nothing_happened(happened.dtype)  # what a start writes is no event
        return Episode(self.arena, records, happened, self.policy[frames.seats], self.whole)


@dataclass
class _Open:
    """An episode that goes on, in pieces."""

    arena: int
    whole: bool = False
    rows: list[NDArray[np.int32]] = field(default_factory=list)
    success: list[NDArray[np.bool_]] = field(default_factory=list)
    policy: NDArray[np.bool_] | None = None
    before: Episode | None = None

    @property
    def kept(self) -> int:
        """Rows in pieces."""
        return sum(map(len, self.rows))

    def add(self, rows: NDArray[np.int32], success: NDArray[np.bool_], policy: NDArray[np.bool_]) -> None:
        self.rows.append(rows)
        self.success.append(success)
        self.policy = policy

    def forget(self, most: int) -> None:
        """Drops the oldest pieces, as long as `most` rows are left."""
        while self.kept - len(self.rows[0]) >= most:
            self.rows.pop(0)
            self.success.pop(0)
            self.whole = False

    def compact(self, frames: RocketFrames) -> None:
        """Makes frames of the pieces, which take an eighth of the memory."""
        self.before = self.closed().encoded(frames)
        self.rows, self.success = [], []

    def closed(self) -> RawEpisode:
        assert self.policy is not None
        return RawEpisode(self.arena, np.concatenate(self.rows), np.concatenate(self.success), self.policy, self.whole,
                          self.before)


class _Steps(NamedTuple):
    """Steps of one arena, [n, ...]; see Strip."""

    before: NDArray[Any]
    after: NDArray[Any]
    ended: NDArray[Any]
    policy: NDArray[Any]
    success: NDArray[Any]


class Episodes:
    """Follows the episodes in the arenas of a tape."""

    def __init__(self, tape: Tape, first_arena: int = 0, most: int | None = None) -> None:
        """`first_arena`: the number of the shard's first arena. `most`: of longer episodes at least so many frames, the last
        ones, are kept."""
        self.tape, self.most = tape, most
        self._open = [_Open(first_arena + arena) for arena in tape.arenas]
        places = {(part, name): offset for part, name, _, _, offset, _ in GameState.layout(tape.seats)}
        self._tick = places["game", "tick"] // WORD
        self._no_success = np.zeros((1, len(tape.measures), tape.seats), np.bool_)

    def read(self) -> list[RawEpisode]:
        """Reads the tape, and returns the episodes that have ended since, arena by arena. This is a host sync."""
        return self.take(self.tape.read())

    def forget(self) -> None:
        """Forgets all episodes: others begin everywhere. This is a host sync."""
        self.tape.drop()
        self._open = [_Open(one.arena) for one in self._open]

    def take(self, strip: Strip) -> list[RawEpisode]:
        """Adds the steps of a strip, and returns the episodes that end in them."""
        if strip.torn:
            self._open = [_Open(one.arena) for one in self._open]
        if not len(strip.ended):
            return []
        steps = [x.numpy() for x in (strip.before, strip.after, strip.ended, strip.policy, strip.success)]
        return [episode for k in range(len(self._open)) for episode in self._cut(k, _Steps(*(x[:, k] for x in steps)))]

    def unfinished(self) -> list[RawEpisode]:
        """Returns what is known of the episodes that go on."""
        return [one.closed() for one in self._open if one.rows]

    def compact(self, frames: RocketFrames) -> None:
        """Saves memory where episodes are long and many are followed, and all become recordings."""
        for one in self._open:
            if one.kept >= MANY:
                one.compact(frames)

    def _cut(self, k: int, steps: _Steps) -> Iterator[RawEpisode]:
        """The episodes of one arena that end in these steps; what comes after the last of them stays open."""
        begins = np.flatnonzero(steps.before[:, self._tick] == 0).tolist()
        cuts = sorted({0, len(steps.ended), *(np.flatnonzero(steps.ended) + 1).tolist(), *begins})
        for start, stop in pairwise(cuts):
            one = self._open[k]
            if start in begins:
                self._open[k] = one = _Open(one.arena, whole=True)
                one.add(steps.before[start:start + 1], self._no_success, steps.policy[start])
            one.add(steps.after[start:stop], steps.success[start:stop], steps.policy[stop - 1])
            if steps.ended[stop - 1]:
                yield one.closed()
                self._open[k] = _Open(one.arena)
            elif self.most is not None:
                one.forget(self.most)
