"""ActionLog: the actions of every environment's current episode, which together with its seed are its state."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wavedash.envs.arrays import Arrays
from wavedash.envs.host import Array

LIMIT = 200_000
"""Steps of an episode that are kept. A longer one cannot be replayed; more would cost memory without bound."""
FIRST_ROOM = 1024
"""Steps for which there is memory at first."""


class Mark(NamedTuple):
    """A moment between two steps."""

    steps: int
    """Steps recorded until then."""
    length: Array
    """[E]: steps of each environment's episode at that time."""


class ActionLog:
    """The actions [steps, E, ...] of all environments in each step. An environment whose episode has L steps took its actions
    in the last L of them, so the number of steps and the lengths are enough to find those of any moment in the past."""

    def __init__(self, arrays: Arrays, limit: int = LIMIT) -> None:
        envs, rows = len(arrays.episode), len(arrays.action)
        shape = arrays.action.shape[1:] if rows == envs else (rows // envs, *arrays.action.shape[1:])
        self._action, self._length = arrays.action.reshape(envs, *shape), arrays.length
        self._limit = limit
        self.action_shape = shape
        self._taken = np.empty((FIRST_ROOM, envs, *shape), arrays.action.dtype)
        self._first = 0  # the step whose actions are `_taken[0]`
        self._end = 0  # steps in `_taken`
        self._held: Mark | None = None
        self._replayed: list[int] | None = None  # after `write`, until a step is recorded: how many actions each has

    def record(self) -> None:
        """Record `arrays.action`, before the step."""
        if self._end == len(self._taken):
            self._make_room()
        self._taken[self._end] = self._action
        self._end += 1
        self._replayed = None

    def mark(self) -> Mark:
        """This moment. It must not be called during a step."""
        return Mark(self._first + self._end, self._length.copy())

    def hold(self, mark: Mark) -> None:
        """Keep what `read` needs of this moment until another one is held."""
        self._held = mark

    def lengths(self, mark: Mark) -> list[int]:
        """Steps taken in each environment's episode at that time; -1 where they are too many to have been kept."""
        return [length if length <= self._limit else -1 for length in mark.length.tolist()]

    def read(self, mark: Mark) -> list[Array]:
        """The actions [length, ...] of each environment's episode at that time."""
        end = mark.steps - self._first
        return [self._taken[end - max(length, 0) : end, env] for env, length in enumerate(self.lengths(mark))]

    def of(self, env: int) -> Array:
        """The actions of this environment's episode, with that of the current step; during a replay, those replayed so far."""
        length = min(int(self._length[env]), self._limit)
        begin = self._end - (length if self._replayed is None else self._replayed[env])
        return self._taken[begin : begin + length, env]

    def write(self, actions: list[Array]) -> None:
        """The reverse of `read`."""
        self._held = None
        self._first, self._end = 0, max(len(taken) for taken in actions)
        if self._end > len(self._taken):
            self._taken = np.empty((_room_for(self._end), *self._taken.shape[1:]), self._taken.dtype)
        for env, taken in enumerate(actions):
            self._taken[self._end - len(taken) : self._end, env] = taken
        self._replayed = [len(taken) for taken in actions]

    def _make_room(self) -> None:
        """Forget what no episode needs any more, or get more memory where most is needed."""
        needed = min(int(self._length.max()), self._limit)
        if self._held is not None:
            since = self._first + self._end - self._held.steps
            needed = max(needed, since + min(int(self._held.length.max()), self._limit))
        needed = min(needed, self._end)
        kept = self._taken[self._end - needed : self._end]
        if _room_for(needed) > len(self._taken):
            self._taken = np.empty((_room_for(needed), *self._taken.shape[1:]), self._taken.dtype)
        self._taken[:needed] = kept
        self._first, self._end = self._first + self._end - needed, needed


def _room_for(steps: int) -> int:
    """Half as much again, so that actions are rarely moved."""
    return steps * 3 // 2 + FIRST_ROOM // 2
