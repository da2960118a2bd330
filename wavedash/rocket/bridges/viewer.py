"""Viewer: the interface of every window; and Pace, which slows a game down to the speed at which people watch."""
from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from wavedash.rocket.state import GameState


class Viewer(ABC):
    """A window that shows one arena. `viewer.show(env.state_of(3))` after every step shows arena 3 of a `RocketEnv`."""

    @abstractmethod
    def show(self, state: GameState, arena: int = 0) -> None:
        """Sends one arena of a state, in the game's own coordinates. The call does not wait for the window, and does not fail
        when there is none."""

    def close(self) -> None:  # noqa: B027 (optional)
        """Ends the window: no more states come. It may be called twice."""


def on_host(state: GameState, arena: int) -> GameState:
    """One arena [1, ...] in host memory: a single copy where it lies on a GPU."""
    if not 0 <= arena < state.arenas:
        raise IndexError(f"there is no arena {arena}: the state has {state.arenas}, counted from 0")
    return state.part(slice(arena, arena + 1)).to("cpu")


class Pace:
    """Keeps a game at a speed: 1 is the game's own, 2 is twice as fast, 0 does not wait at all."""

    def __init__(self, speed: float = 1.0, clock: Callable[[], float] = time.monotonic,
                 sleep: Callable[[float], None] = time.sleep):
        self.speed, self._clock, self._sleep = speed, clock, sleep
        self._due = clock()

    def wait(self, seconds: float) -> None:
        """Waits until so many seconds of the game have passed since the previous call. Lost time is not made up for."""
        if self.speed == 0:
            return
        now = self._clock()
        self._due = max(now, self._due + seconds / self.speed)
        self._sleep(self._due - now)
