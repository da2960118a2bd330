"""RLGymV2GymWrapper gives an RLGym v2 environment the interface that rlgym-ppo takes. It runs in workers, without torch."""
from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from wavedash.envs.host import Array, HostEnv
from wavedash.envs.rlgym import RLGymEnv
from wavedash.envs.rlgym.gym_env import GymEnv


class RLGymV2GymWrapper:
    """An RLGym v2 environment with the interface of a gym for several agents: `[agents, ...]` in and out.

    The Learner uses the environment inside, where every agent ends on its own. In a script that steps the wrapper itself, an
    episode is over when all agents have ended: `truncated` if all were truncated, else `done`.
    """

    def __init__(self, rlgym_env: Any) -> None:
        self.rlgym_env = rlgym_env
        self._host_env = RLGymEnv(rlgym_env)
        self.observation_space, self.action_space = self._host_env.observation_space, self._host_env.action_space
        self.agent_map: dict[int, Hashable] = {}
        self._ends: dict[Hashable, bool] = {}  # agents that have ended, and whether they were truncated

    def as_host_env(self) -> HostEnv:
        """Returns the environment inside, unless a subclass of this wrapper may behave differently."""
        return self._host_env if type(self) is RLGymV2GymWrapper else GymEnv(self)

    def reset(self) -> Array:
        obs = self.rlgym_env.reset()
        self.agent_map = dict(enumerate(obs))
        self._ends = {}
        return np.asarray(list(obs.values()), np.float32)

    def step(self, actions: Array) -> tuple[Array, list[float], bool, bool, dict[str, Any]]:
        rows = np.asarray(actions).astype(self.action_space.dtype).reshape(len(self.agent_map), *self._host_env.action_shape)
        obs, reward, terminated, truncated = self.rlgym_env.step({self.agent_map[i]: row for i, row in enumerate(rows)})
        for agent in obs:
            if terminated[agent] or truncated[agent]:
                self._ends.setdefault(agent, not terminated[agent])
        over, cut_off = len(self._ends) == len(self.agent_map), all(self._ends.values())
        rewards = [float(reward[agent]) for agent in obs]
        info = {"state": self.rlgym_env.state}
        return np.asarray(list(obs.values()), np.float32), rewards, over and not cut_off, over and cut_off, info

    def render(self) -> None:
        self.rlgym_env.render()

    def seed(self, seed: int) -> None:
        """Does nothing: RLGym has no seed."""

    def close(self) -> None:
        self.rlgym_env.close()
