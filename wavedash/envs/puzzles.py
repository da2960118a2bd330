"""Small environments that cannot be solved without memory. Used by presets, tests and benchmarks of recurrent policies."""
from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class PositionsOnly(gymnasium.ObservationWrapper[Any, Any, Any]):
    """CartPole without velocities: they have to be inferred from what was seen before."""

    def __init__(self, env: gymnasium.Env[Any, Any]):
        super().__init__(env)
        space = env.observation_space
        assert isinstance(space, spaces.Box)
        self.observation_space = spaces.Box(space.low[[0, 2]], space.high[[0, 2]], (2,), np.float32)

    def observation(self, observation: Any) -> Any:
        return observation[[0, 2]]


def masked_cartpole(max_episode_steps: int = 500) -> gymnasium.Env[Any, Any]:
    """CartPole without velocities. An episode pays 500 at best; without memory a policy stays below about 50."""
    return PositionsOnly(gymnasium.make("CartPole-v1", max_episode_steps=max_episode_steps))


class WithPositions(gymnasium.ObservationWrapper[Any, Any, Any]):
    """CartPole seen in two ways at once: `obs` with velocities, for a teacher, and `positions` without, for its student."""

    def __init__(self, env: gymnasium.Env[Any, Any]):
        super().__init__(env)
        self.observation_space = spaces.Dict({"obs": env.observation_space,
                                              "positions": PositionsOnly(env).observation_space})

    def observation(self, observation: Any) -> Any:
        return {"obs": observation, "positions": observation[[0, 2]]}


def cartpole_with_positions(max_episode_steps: int = 500) -> gymnasium.Env[Any, Any]:
    """CartPole for a student without velocities and a teacher with them; see docs/distillation.md."""
    return WithPositions(gymnasium.make("CartPole-v1", max_episode_steps=max_episode_steps))


class RepeatPrevious(gymnasium.Env[Any, Any]):
    """A card of four suits is shown at every step; name the one of `delay` steps ago. An episode pays 1 at best, -1 at worst,
    -0.5 by chance."""

    def __init__(self, delay: int = 4, length: int = 52):
        self.delay, self.length = delay, length
        self.observation_space = spaces.Box(0.0, 1.0, (4,), np.float32)
        self.action_space = spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.cards, self.t = self.np_random.integers(0, 4, self.length), 0
        return self._look(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = 0.0
        if self.t >= self.delay:
            right = int(action) == self.cards[self.t - self.delay]
            reward = (1.0 if right else -1.0) / (self.length - 1 - self.delay)
        self.t += 1
        return self._look(), reward, self.t == self.length - 1, False, {}

    def _look(self) -> Any:
        return np.eye(4, dtype=np.float32)[self.cards[self.t]]


class TMaze(gymnasium.Env[Any, Any]):
    """A sign at the start says which way to turn at the end of a corridor. It pays 1 at best, without memory 0.5 on average."""

    def __init__(self, corridor: int = 10):
        self.corridor = corridor
        self.observation_space = spaces.Box(-1.0, 1.0, (3,), np.float32)  # sign (only at the start), at the junction, bias
        self.action_space = spaces.Discrete(3)  # forward, left, right

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.sign, self.place, self.t = int(self.np_random.integers(0, 2)), 0, 0
        return self._look(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        at_junction = self.place == self.corridor
        if at_junction and action != 0:
            right = int(action) == self.sign + 1
            return self._look(), float(right), True, False, {"is_success": right}
        self.place = min(self.place + int(action == 0), self.corridor)
        return self._look(), 0.0, False, self.t == 3 * self.corridor, {"is_success": False}

    def _look(self) -> Any:
        sign = 2.0 * self.sign - 1.0 if self.place == 0 else 0.0
        return np.array([sign, float(self.place == self.corridor), 1.0], np.float32)
