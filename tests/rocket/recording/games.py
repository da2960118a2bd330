"""What tests of recorded games share: games by hand, as frames and what happened in them."""
from __future__ import annotations

from typing import Any

import numpy as np
import torch

from wavedash.rocket.parts import Start
from wavedash.rocket.recording.episodes import Episode
from wavedash.rocket.recording.events import ENCOUNTERS, Happened, happened_type
from wavedash.rocket.recording.frames import RocketFrames
from wavedash.rocket.state import GameState

STEP = 1 / 15
"""Seconds between two frames"""


def players(*names: str, blue: int | None = None) -> list[dict[str, Any]]:
    """Players of these names, by default half of them blue."""
    blue = len(names) // 2 if blue is None else blue
    return [{"name": name, "team": int(car >= blue), "hitbox": "octane", "policy": True, "human": False}
            for car, name in enumerate(names)]


def nothing(frames: int, cars: int = 2, measures: int = 0) -> Happened:
    """Frames in which nothing happens."""
    found = np.zeros(frames, happened_type(cars, measures))
    for name in ("goal_of", *ENCOUNTERS):
        found[name] = -1
    return found


def episode_of(happened: Happened, speed: Any = 0.0, cars: int = 2) -> Episode:
    """An episode in which the ball has this `speed` along x, [F] or for all frames."""
    frames = RocketFrames([True] * cars)
    records = np.zeros(len(happened), frames.layout.dtype)
    records["tick"] = 8 * np.arange(len(happened))
    records["ball.velocity"][:, 0] = np.asarray(speed) / frames.layout.by_name["ball.velocity"].scale
    return Episode(0, records, happened, np.ones(cars, np.bool_), True)


class Tap(Start):
    """The ball rolls toward orange's goal, and the first blue car runs into it from behind."""

    def write(self, state: GameState, generator: torch.Generator) -> None:
        speed = torch.rand(state.arenas, generator=generator, device=state.device) * 1000
        state.ball.position[:] = torch.tensor([0.0, 4500.0, 93.0])
        state.ball.velocity[:, 1] = 500 + speed
        state.cars.position[:, 0] = torch.tensor([0.0, 4320.0, 17.0])
        state.cars.velocity[:, 0, 1] = 1000 + speed
        state.cars.rotation[:, 0] = torch.tensor([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
