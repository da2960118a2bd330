"""Brain: what the policy decides, from a game's arrays to controls. It remembers what a policy remembers within an episode."""
from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .actions import Actions
from .field import Field
from .observation import make_observation
from .policy import Policy

Array = NDArray[Any]


class Brain:
    """The policy of `folder`: settings.json and weights.npz."""

    def __init__(self, folder: Path) -> None:
        settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
        with np.load(folder / "weights.npz", allow_pickle=False) as file:
            weights = {name: file[name] for name in file.files}
        self.policy = Policy(settings["policy"], weights)
        self.observation = make_observation(settings["observation"])
        self.actions = Actions(settings["action"], weights)
        self.field = Field(weights["field.triangles"])
        self.games: int = settings.get("games", 1)
        """Games in a row that were one episode in training"""
        self.begin()

    def begin(self) -> None:
        """An episode begins, as in training."""
        self.policy.begin()
        self.next_game()

    def next_game(self) -> None:
        """The next game of the episode begins: the policy remembers the games before."""
        self.observation.begin()
        self.actions.begin()
        self.controls = np.zeros(8, np.float32)

    def decide(self, game: Mapping[str, Array], me: int) -> Array:
        """The controls [8] of the car `me`. What it saw and chose stays in `seen`, `mask` and `action`."""
        car = {name: x[me] for name, x in game.items() if name not in ("ball", "pads")}
        self.seen = self.observation.build(game, me, self.controls)
        self.mask = self.actions.mask(car)
        self.action = self.policy.act(self.seen, self.mask)
        self.controls = self.actions.controls(self.action)
        return self.controls
