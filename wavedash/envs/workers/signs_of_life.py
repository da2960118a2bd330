"""SignsOfLife: what a worker notes in shared memory before each call that may take long or end its process.

They let its parent tell a slow worker from a hung one, and say where a worker was that died without a message.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

WAITING, MAKING = 0, 1
"""What a worker is doing: waiting for a command, or making its things. Programs number their own calls from `MAKING` + 1 on."""


class SignsOfLife(NamedTuple):
    """Signs of life of a worker that has n things (environments, arenas), which it calls one after the other."""

    beats: NDArray[Any]  # [n] int64: grow from call to call; the thing that was called last has the largest
    doing: NDArray[Any]  # [1] int64: the kind of the call

    def clear(self) -> None:
        self.beats[:] = 0
        self.doing[0] = WAITING

    @property
    def latest(self) -> int:
        """A number that grows with every sign of life."""
        return int(self.beats.max())

    @property
    def thing(self) -> int:
        """The index of the thing that was called last."""
        return int(self.beats.argmax())


class Pulse:
    """The worker's side of its signs of life."""

    def __init__(self, signs: SignsOfLife) -> None:
        self._beats, self._doing, self._beat = signs.beats, signs.doing, signs.latest

    def note(self, thing: int, doing: int) -> None:
        """Note that this thing is about to be called."""
        self._beat += 1
        self._beats[thing] = self._beat
        self._doing[0] = doing

    def rest(self) -> None:
        self._doing[0] = WAITING
