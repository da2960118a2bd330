"""Human: a player that drives cars by the newest controls that came from a page."""
from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.rocket.parts import Player
from wavedash.rocket.state import CONTROLS, STICKS, GameState

FORGOTTEN = 0.5
"""Seconds after which controls no longer count: a page that hangs or has gone lets go of them"""


class Human(Player):
    """Drives any seat; it decides at every step of the arenas."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._held: dict[int, tuple[float, list[float]]] = {}

    def __str__(self) -> str:
        return "a human"

    def hold(self, car: int, controls: Any) -> None:
        """These are the controls of a car from now on. UserError: they are no controls."""
        self._held[car] = self.clock(), checked(controls)

    def let_go(self, car: int) -> None:
        self._held.pop(car, None)

    def drive(self, state: GameState, chosen: Tensor) -> Tensor:
        driven, now = torch.zeros_like(chosen), self.clock()
        for car, (since, controls) in self._held.items():
            if now - since <= FORGOTTEN:
                driven[0, car] = torch.tensor(controls)
        return driven


def checked(controls: Any) -> list[float]:
    """Eight controls, sticks clipped to -1 to 1, buttons pressed or not. UserError: they are not eight numbers."""
    if not isinstance(controls, list) or len(controls) != len(CONTROLS) or not all(
            isinstance(x, (int, float)) and not isinstance(x, bool) and math.isfinite(x) for x in controls):
        raise UserError(f"controls are a list of {len(CONTROLS)} numbers: {', '.join(CONTROLS)}")
    return [min(1.0, max(-1.0, float(x))) for x in controls[:STICKS]] + [float(x > 0.5) for x in controls[STICKS:]]
