"""Player: packets in, controls out. It decides as in training, and clears what it remembers wherever play begins anew."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .actions import Actions
from .game import Game
from .observation import make_observation
from .pace import Pace
from .policy import Policy

Array = NDArray[Any]
PLAYING = (2, 3)
"""Numbers of RLBot's match phases in which cars move: Kickoff and Active"""


class Player:
    """Plays one car of a match with the policy of `folder`: settings.json and weights.npz."""

    def __init__(self, folder: Path, pads: Any) -> None:
        self.settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
        with np.load(folder / "weights.npz", allow_pickle=False) as file:
            weights = {name: file[name] for name in file.files}
        self.policy = Policy(self.settings["policy"], weights)
        self.observation = make_observation(self.settings["observation"])
        self.actions = Actions(self.settings["action"], weights)
        self.pace = Pace(self.actions.ticks, self.actions.delay)
        self.game = Game(pads)
        self.chosen = np.zeros(8, np.float32)
        self.playing = False

    def controls(self, packet: Any, index: int) -> Array:
        """The eight controls to answer this packet with; idle while nobody may move."""
        ticks = self.game.update(packet)
        frame = self.game.frame
        if int(packet.match_info.match_phase) not in PLAYING or index not in self.game.seats or not packet.balls:
            self.playing = False
            return self.pace.idle
        me = self.game.seats.index(index)
        if not self.playing or ticks > 120:
            self.begin(frame)
        self.pace.seen(frame, self.game.arrays["controls"][me])
        if self.pace.decides(frame):
            self.pace.decide(frame, self.decide(me))
        return self.pace.send(frame)

    def begin(self, frame: int) -> None:
        """An episode begins, as in training."""
        self.playing = True
        self.chosen = np.zeros(8, np.float32)
        for part in (self.policy, self.observation, self.actions):
            part.begin()
        self.pace.begin(frame)

    def decide(self, me: int) -> Array:
        arrays = self.game.arrays
        car = {name: x[me] for name, x in arrays.items() if name not in ("ball", "pads")}
        observed = self.observation.build(arrays, me, self.chosen)
        self.chosen = self.actions.controls(self.policy.act(observed, self.actions.mask(car)))
        return self.chosen
