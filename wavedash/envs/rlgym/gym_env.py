"""GymEnv: an environment with the interface of old Gym, for one agent or several (what rlgym-ppo takes), as a `HostEnv`.

`reset()` returns observations `[agents, ...]`, or those of the only agent; `step(actions [agents, k])` returns `obs, rewards,
done, info` or, with truncation told apart, `obs, rewards, done, truncated, info`. All agents end together; their number may
change at reset. This file runs in worker processes, so it must not import torch.
"""
from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from wavedash.envs.errors import EnvError
from wavedash.envs.host import Array, HostStep
from wavedash.envs.rlgym.env import TRIES
from wavedash.envs.rlgym.foreign_spaces import action_space_of
from wavedash.envs.rlgym.own_randomness import OwnRandomness


class GymEnv:
    """Has as many rows as the largest of a few episodes has agents."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._randomness = OwnRandomness()
        if getattr(env, "action_space", None) is None:
            raise EnvError(f"{type(env).__name__} has no action_space: set it to a Discrete, MultiDiscrete or Box space")
        space = action_space_of(env.action_space)
        # rlgym-ppo's continuous actions lie between -1 and 1 whatever the bounds of the space are.
        self.action_space: gymnasium.Space[Any] = spaces.Box(-1.0, 1.0, space.shape) if isinstance(space, spaces.Box) else space
        told = getattr(getattr(env, "observation_space", None), "shape", None)
        first = np.asarray(self._restart(0), np.float32)
        self._shape: tuple[int, ...] = first.shape[-1:] if told is None else tuple(told)
        self.observation_space: gymnasium.Space[Any] = spaces.Box(-np.inf, np.inf, self._shape, np.float32)
        self.num_rows = max(len(self._by_agent(self._restart(seed))) for seed in range(TRIES))
        self._obs = np.zeros((self.num_rows, *self._shape), np.float32)
        self._agents = 0
        self.active: bool | Array = True

    def reset(self, seed: int) -> Array:
        obs = self._by_agent(self._restart(seed))
        if len(obs) > self.num_rows:
            raise EnvError(f"this episode has {len(obs)} agents, but {TRIES} episodes before it had {self.num_rows} at most: "
                           "let the largest teams appear more often")
        self._agents = len(obs)
        self.active = True if self.num_rows == 1 else np.arange(self.num_rows) < len(obs)
        return self._see(obs)

    def step(self, action: Any) -> HostStep:
        actions = np.asarray(action, np.float32).reshape(self.num_rows, -1)[: self._agents]
        with self._randomness:
            result = self._env.step(actions)
        if len(result) == 5:
            obs, reward, terminated, truncated, info = result
        else:
            obs, reward, terminated, info = result
            truncated = bool(info.get("TimeLimit.truncated"))  # how old Gym marks a time limit
            terminated = terminated and not truncated
        seen = self._by_agent(obs)
        if len(seen) != self._agents:
            raise EnvError(f"an episode of {self._agents} agents has {len(seen)} after a step: their number may change at "
                           "reset only")
        rewards = np.zeros(self.num_rows, np.float32)
        rewards[: self._agents] = np.reshape(reward, self._agents)
        return self._see(seen), rewards if self.num_rows > 1 else rewards[0], bool(terminated), bool(truncated), info

    def close(self) -> None:
        if hasattr(self._env, "close"):
            self._env.close()

    def _restart(self, seed: int) -> Any:
        self._randomness.seed(seed)
        with self._randomness:
            return self._env.reset()

    def _by_agent(self, obs: Any) -> Array:
        """Observations [agents, ...]."""
        seen = np.asarray(obs, np.float32)
        if seen.shape == self._shape:
            return seen[None]
        if seen.shape[1:] == self._shape:
            return seen
        raise EnvError(f"an observation has the shape {seen.shape}, but the observation space says {self._shape} for each "
                       "agent: correct one of them")

    def _see(self, obs: Array) -> Array:
        self._obs[: len(obs)] = obs
        self._obs[len(obs) :] = 0.0
        return self._obs if self.num_rows > 1 else self._obs[0]
