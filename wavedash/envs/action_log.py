"""ActionLog: the actions of every world's current episode, which together with its seed are the state of the world."""
from __future__ import annotations

import numpy as np

from wavedash.envs.arrays import Arrays
from wavedash.envs.host import Array

LIMIT = 200_000
"""Steps of an episode that are kept. A longer one cannot be replayed; more would cost memory without bound."""


class ActionLog:
    """[E, steps so far, ...], written for all worlds at once; grows with the longest episode up to `limit`."""

    def __init__(self, arrays: Arrays, limit: int = LIMIT) -> None:
        worlds, rows = len(arrays.episode), len(arrays.action)
        shape = arrays.action.shape[1:] if rows == worlds else (rows // worlds, *arrays.action.shape[1:])
        self._action, self._length = arrays.action.reshape(worlds, *shape), arrays.length
        self._limit = limit
        self.action_shape = shape
        self._taken = np.empty((worlds, min(1024, limit), *shape), arrays.action.dtype)
        self._world = np.arange(worlds)
        self._longest = 0  # no episode is longer; looked up only when this bound would not fit

    def record(self) -> None:
        """`arrays.action`, before it is taken."""
        length = self._length
        if self._longest >= self._taken.shape[1]:
            self._longest = int(length.max())
            self._grow(self._longest + 1)
            length = np.minimum(length, self._limit - 1)
        self._longest += 1
        self._taken[self._world, length] = self._action

    def lengths(self) -> list[int]:
        """Steps taken in each world's episode; -1 where they are too many to have been kept."""
        return [length if length <= self._limit else -1 for length in self._length.tolist()]

    def read(self) -> list[Array]:
        """The actions [length, ...] of each world's episode."""
        return [taken[: max(length, 0)] for taken, length in zip(self._taken, self.lengths(), strict=True)]

    def of(self, world: int) -> Array:
        """The actions of this world's episode, in the order in which they were taken."""
        return self._taken[world, : min(int(self._length[world]), self._limit)]

    def write(self, actions: list[Array]) -> None:
        """The reverse of `read`."""
        self._longest = max(len(taken) for taken in actions)
        self._grow(self._longest)
        for target, taken in zip(self._taken, actions, strict=True):
            target[: len(taken)] = taken

    def _grow(self, steps: int) -> None:
        worlds, capacity, *shape = self._taken.shape
        if steps > capacity < self._limit:
            larger = np.empty((worlds, min(max(steps, 2 * capacity), self._limit), *shape), self._taken.dtype)
            larger[:, :capacity] = self._taken
            self._taken = larger
