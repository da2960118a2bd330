"""An environment whose steps take a given time."""
from __future__ import annotations

import time

import gymnasium
import numpy as np


class Sleepy(gymnasium.Env):
    """It sleeps in every step."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (3,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, delay: float):
        self.delay, self.steps = delay, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(3, np.float32), {}

    def step(self, action):
        time.sleep(self.delay)
        self.steps += 1
        return np.zeros(3, np.float32), 1.0, False, self.steps == 20, {}


def make(delay: float = 0.0) -> Sleepy:
    return Sleepy(delay)
