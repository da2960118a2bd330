"""A module beside the script, which uses rlgym-ppo too."""
from types import SimpleNamespace

import gymnasium
import numpy as np
from rlgym_ppo.util import MetricsLogger  # noqa: F401 (modules of bots import what they like)

ROOM = 5


class Walk:
    """Left or right, until the end of the room. Old Gym's interface: four values, one observation."""

    observation_space = gymnasium.spaces.Box(-10, 10, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, room):
        self.room = room

    def reset(self):
        self.place = np.random.randint(-2, 3)
        return self.look()

    def look(self):
        return np.asarray([self.place, self.room - self.place], np.float32)

    def step(self, action):
        self.place += 1 if action[0] else -1
        return self.look(), float(action[0]), abs(self.place) >= self.room, {"state": SimpleNamespace(place=self.place)}
