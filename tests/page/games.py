"""Recordings of games with known content, played by RocketSim."""
from __future__ import annotations

from collections.abc import Sequence
from math import pi
from pathlib import Path
from typing import Any

from wavedash.web.stage.base import Out
from wavedash.web.stage.rocket import RocketStage

AHEAD = pi / 2
"""The yaw of a car that looks at orange's goal"""


class Silent(Out):
    """Nobody listens."""

    def __init__(self) -> None:
        self.game = 0

    def send(self, message: Any) -> None:
        pass

    def frame(self, record: bytes) -> None:
        pass


def record_game(folder: Path, seconds: float, blue: str = "idle", orange: str = "idle", seed: int = 5, size: int = 1,
                placed: dict[str, Any] | None = None, controls: Sequence[float] | None = None) -> Path:
    """The first seconds of a game as a file. `placed`: where bodies begin (see place.py). `controls`: what car 0 does."""
    stage = RocketStage({"blue": blue, "orange": orange, "seed": seed, "size": size, "folder": str(folder)}, Silent())
    try:
        stage.begin()
        if placed is not None:
            stage.obey({"do": "place", **placed})
        if controls is not None:
            stage.obey({"do": "drive", "car": 0})
        for _ in range(round(seconds / stage.env.step_seconds)):
            if controls is not None:
                stage.obey({"do": "controls", "car": 0, "controls": list(controls)})
            stage.step()
        return stage.record()
    finally:
        stage.close()
