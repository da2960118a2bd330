"""Environments that misbehave in one way each, for tests of the messages that a user then gets."""
from __future__ import annotations

import gymnasium
import numpy as np


class Broken(gymnasium.Env):
    """A small environment that is fine for 20 steps and then does what `how` says."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (3,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, how: str):
        self.how, self.steps = how, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(3, np.float32), {}

    def step(self, action):
        self.steps += 1
        obs, reward = np.zeros(3, np.float32), 1.0
        if self.steps > 20:
            if self.how == "raise":
                raise ZeroDivisionError("the ball is gone")
            if self.how == "nan":
                obs[1] = np.nan
            elif self.how == "nan_reward":
                reward = float("inf")
            elif self.how == "shape":
                obs = np.zeros(4, np.float32)
            elif self.how == "dtype":
                obs = np.array(["a", "b", "c"])
        return obs, reward, False, self.steps % 10 == 0, {}


def make(how: str) -> Broken:
    return Broken(how)
