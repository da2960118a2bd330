"""EpisodeLog: the beginnings and controls of the games that are being played.

RocketSim does not expose all of its state (contacts, forces of the wheels), so a game cannot be saved by its state alone. But
its beginning and the controls since determine it: played again, they give the same game bit for bit.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from wavedash.rocket.rocketsim.record import Array, SharedArrays


class EpisodeLog:
    """The log of E arenas. A game begins when its arena is placed, or goes on in another process."""

    def __init__(self, arrays: SharedArrays) -> None:
        self._beginnings = arrays.records.copy()  # [E, R]: what each arena was placed with
        self._age = np.zeros(len(arrays.records), np.int64)  # [E]: steps since then
        self._steps: deque[tuple[Array, int, int]] = deque()
        """Controls [E, C, 8], ticks and delay of the last steps, as many as the oldest game has"""

    def record(self, arrays: SharedArrays, ticks: int, delay: int) -> None:
        """Adds a step to the log. Arenas that are `placed` begin a new game with it."""
        placed = arrays.placed
        if placed.any():
            self._beginnings[placed] = arrays.records[placed]
            self._age[placed] = 0
            for _ in range(len(self._steps) - int(self._age.max())):
                self._steps.popleft()
        self._age += 1
        self._steps.append((arrays.controls.copy(), ticks, delay))

    def begin(self, arenas: slice, arrays: SharedArrays) -> None:
        """The step that was added last is the first of these games after all, because a new worker does it."""
        self._beginnings[arenas] = arrays.records[arenas]
        self._age[arenas] = 1

    def age_of(self, arena: int) -> int:
        """Steps since the arena was placed."""
        return int(self._age[arena])

    def game_of(self, arena: int) -> tuple[Array, Array, Array]:
        """The record that the arena was placed with, and controls [T, C, 8] and ticks and delay [T, 2] of the steps since."""
        steps = list(self._steps)[len(self._steps) - int(self._age[arena]) :]
        controls = np.stack([controls[arena] for controls, _, _ in steps])
        return self._beginnings[arena], controls, np.array([[ticks, delay] for _, ticks, delay in steps])

    def keep(self) -> Callable[[], dict[str, Tensor]]:
        """A function that returns later the log as it is now."""
        beginnings, age, steps = self._beginnings.copy(), self._age.copy(), list(self._steps)
        return lambda: {
            "beginnings": torch.from_numpy(beginnings.view(np.int32)),
            "age": torch.from_numpy(age),
            "controls": torch.from_numpy(np.stack([controls for controls, _, _ in steps])) if steps else torch.empty(0),
            "timing": torch.tensor([[ticks, delay] for _, ticks, delay in steps], dtype=torch.int64).view(-1, 2),
        }
