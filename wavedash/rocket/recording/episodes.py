"""Episodes: what was read from a tape, cut where episodes begin and end, as frames and what happened in them."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wavedash.recordings.layout import Records
from wavedash.rocket.recording.events import ENCOUNTERS, Happened, happened_in, happened_type, with_success
from wavedash.rocket.recording.frames import RocketFrames
from wavedash.rocket.recording.tape import Strip, Tape
from wavedash.rocket.state import GameState, view_of


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


@dataclass
class _Open:
    """An episode that goes on."""

    arena: int
    records: list[Records] = field(default_factory=list)
    happened: list[Happened] = field(default_factory=list)
    policy: NDArray[np.bool_] | None = None
    whole: bool = False
    frames: int = 0

    def add(self, records: Records, happened: Happened, policy: NDArray[np.bool_]) -> None:
        self.records.append(records)
        self.happened.append(happened)
        self.policy, self.frames = policy, self.frames + len(records)

    def forget(self, most: int) -> None:
        """Drops the oldest pieces, as long as `most` frames are left."""
        while self.frames - len(self.records[0]) >= most:
            self.frames -= len(self.records.pop(0))
            self.happened.pop(0)
            self.whole = False

    def closed(self) -> Episode:
        assert self.policy is not None
        return Episode(self.arena, np.concatenate(self.records), np.concatenate(self.happened), self.policy, self.whole)


class _Steps(NamedTuple):
    """Steps of all arenas [n, K, ...], or of one [n, ...]."""

    begins: NDArray[np.bool_]
    """An episode begins with the step"""
    ended: NDArray[np.bool_]
    first: Records
    """The frame before the step, where an episode begins"""
    records: Records
    """The frame after it"""
    happened: Happened
    policy: NDArray[np.bool_]

    def of(self, k: int) -> _Steps:
        return _Steps(*(x[:, k] for x in self))


class Episodes:
    """Follows the episodes in the arenas of a tape."""

    def __init__(self, tape: Tape, frames: RocketFrames, first_arena: int = 0, most: int | None = None) -> None:
        """`first_arena`: the number of the shard's first arena. `most`: of longer episodes at least so many frames, the last
        ones, are kept."""
        self.tape, self.frames, self.most = tape, frames, most
        self._open = [_Open(first_arena + arena) for arena in tape.arenas]
        self.nothing = np.zeros(1, happened_type(frames.cars, len(tape.measures)))
        """[1]: nothing happened"""
        for name in ("goal_of", *ENCOUNTERS):
            self.nothing[name] = -1

    def read(self) -> list[Episode]:
        """Reads the tape, and returns the episodes that have ended since, arena by arena. This is a host sync."""
        return self.take(self.tape.read())

    def forget(self) -> None:
        """Forgets all episodes: others begin everywhere. This is a host sync."""
        self.tape.drop()
        self._open = [_Open(one.arena) for one in self._open]

    def take(self, strip: Strip) -> list[Episode]:
        """Adds the steps of a strip, and returns the episodes that end in them."""
        if strip.torn:
            self._open = [_Open(one.arena) for one in self._open]
        steps = self._steps(strip)
        return [episode for k in range(len(self._open)) for episode in self._cut(k, steps.of(k))] if len(strip.ended) else []

    def unfinished(self) -> list[Episode]:
        """What is known of the episodes that go on."""
        return [one.closed() for one in self._open if one.frames]

    def _steps(self, strip: Strip) -> _Steps:
        shape, words, seats = strip.ended.shape, strip.after.shape[-1], self.tape.seats
        begins = _tick_of(strip.before, seats) == 0  # [n, K]
        after, before = strip.after.reshape(-1, words), strip.before[begins]
        state = GameState.over(torch.cat([after, before]), seats)  # one state for both: its views take as long as the rest
        records, happened = self.frames.records(state), happened_in(state, self.frames)[:len(after)]
        if self.tape.measures:
            happened = with_success(happened, strip.success.flatten(0, 1).numpy()[..., self.frames.seats])
        first = np.empty(shape, records.dtype)
        first[begins.numpy()] = records[len(after):]
        return _Steps(begins.numpy(), strip.ended.numpy(), first, records[:len(after)].reshape(shape), happened.reshape(shape),
                      strip.policy[..., self.frames.seats].numpy())

    def _cut(self, k: int, steps: _Steps) -> Iterator[Episode]:
        """The episodes of one arena that end in these steps; what comes after the last of them stays open."""
        count = len(steps.ended)
        cuts = sorted({0, count, *(np.flatnonzero(steps.ended) + 1).tolist(), *np.flatnonzero(steps.begins).tolist()})
        for start, stop in pairwise(cuts):
            one = self._open[k]
            if steps.begins[start]:
                self._open[k] = one = _Open(one.arena, whole=True)
                one.add(steps.first[start:start + 1], self.nothing, steps.policy[start])
            one.add(steps.records[start:stop], steps.happened[start:stop], steps.policy[stop - 1])
            if steps.ended[stop - 1]:
                yield one.closed()
                self._open[k] = _Open(one.arena)
            elif self.most is not None:
                one.forget(self.most)


def _tick_of(memory: Tensor, seats: int) -> Tensor:
    """[n, K]: the clock of each record."""
    offset = next(at for part, name, _, _, at, _ in GameState.layout(seats) if (part, name) == ("game", "tick"))
    return view_of(memory.reshape(-1, memory.shape[-1]), torch.int32, offset).view(memory.shape[:-1])
