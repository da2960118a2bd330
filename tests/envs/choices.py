"""Environments that observe choices, bits and pictures of bits, each of which follows from the seed and the step."""
from __future__ import annotations

import copy

import gymnasium
import numpy as np
from gymnasium import spaces

SPACES = {
    "multi-discrete": spaces.MultiDiscrete([3, 2, 4]),
    "shifted": spaces.MultiDiscrete([3, 2], start=[-1, 5]),
    "table": spaces.MultiDiscrete([[2, 3], [4, 2]]),
    "discrete": spaces.Discrete(5, start=2),
    "bits": spaces.MultiBinary(6),
    "bitmap": spaces.MultiBinary((8, 8)),
    "dict": spaces.Dict({
        "speed": spaces.Box(-1.0, 1.0, (2,)), "kind": spaces.Discrete(3), "cards": spaces.MultiDiscrete([2, 3]),
        "lamps": spaces.MultiBinary(3), "action_mask": spaces.MultiBinary(2),
    }),
}


class Choices(gymnasium.Env):
    """Observations are samples of its space; episodes last five steps. `log` keeps the observations."""

    action_space = spaces.Discrete(2)

    def __init__(self, name: str = "multi-discrete", length: int = 5):
        self.observation_space = copy.deepcopy(SPACES[name])  # with random numbers of its own
        self.length = length
        self.log: list = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.steps = 0
        return self._see(), {}

    def step(self, action):
        self.steps += 1
        return self._see(), float(action), False, self.steps >= self.length, {}

    def _see(self):
        seen = self.observation_space.sample()
        if isinstance(seen, dict):
            seen["action_mask"] = np.ones(2, np.int8)
        self.log.append(seen)
        return seen


class Sum(gymnasium.ObservationWrapper):
    """A user's own wrapper: the observation and its sum, times a factor."""

    def __init__(self, env, factor: float = 1.0):
        super().__init__(env)
        self.factor = factor
        size = env.observation_space.shape[0] + 1
        self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float32)

    def observation(self, observation):
        return np.append(observation, self.factor * observation.sum()).astype(np.float32)


def refuses(env):
    raise ValueError("not today")
