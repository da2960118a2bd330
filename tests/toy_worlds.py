"""Small worlds written directly against `VecEnv`, for proofs about the learner."""
from __future__ import annotations

import gymnasium
import numpy as np
import torch
from torch import Tensor

from wavedash.envs.obs import map_obs
from wavedash.envs.vec_env import Obs, Step, VecEnv


class TapeWorld(VecEnv):
    """Plays back what was recorded, [T, N, ...], whatever the actions; starts over at its end. Never waits for a device."""

    def __init__(
        self,
        obs: Tensor,
        reward: Tensor,
        terminated: Tensor | None = None,
        truncated: Tensor | None = None,
        active: Tensor | None = None,
        action_space: gymnasium.Space | None = None,
    ):
        never = torch.zeros_like(reward, dtype=torch.bool)
        self.obs, self.reward = obs, reward
        self.terminated = never if terminated is None else terminated
        self.truncated = never if truncated is None else truncated
        self.active = ~never if active is None else active
        self.num_rows = reward.shape[1]
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, tuple(obs.shape[2:]))
        self.action_space = action_space or gymnasium.spaces.Discrete(3)
        self.received: list[Tensor] = []
        self.played = 0

    def reset(self, seed: int | None = None) -> Obs:
        self.played = 0
        return self.obs[0].clone()

    def step(self, action: Tensor) -> Step:
        self.received.append(action)
        t = self.played % len(self.obs)
        self.played += 1
        obs = self.obs[self.played % len(self.obs)].clone()
        # The last observation of an episode is told apart from the first of the next by its sign.
        return Step(obs, self.reward[t], self.terminated[t], self.truncated[t], -obs, self.active[t], {})

    def save_state(self) -> dict[str, Tensor]:
        return {"played": torch.tensor(self.played)}

    def load_state(self, state: dict[str, Tensor]) -> Obs:
        self.played = int(state["played"])
        return self.obs[self.played % len(self.obs)].clone()


class IdentityWorld(VecEnv):
    """Do what the observation says: reward 1 for the right action, less the further off. Episodes end at random.

    Any action space; `masked` forbids every wrong discrete choice but one; `inactive`: the share of rows that sit out a step.
    """

    def __init__(self, action_space: gymnasium.Space, rows: int = 16, episode: int = 8, masked: bool = False, inactive=0.0):
        self.num_rows, self.action_space, self.episode, self.inactive = rows, action_space, episode, inactive
        self.sizes = self._sizes(action_space)
        size = sum(self.sizes) if self.sizes else int(np.prod(action_space.shape))
        observation = gymnasium.spaces.Box(-1.0, 1.0, (size,))
        self.masked = masked
        self.observation_space = observation
        if masked:
            mask = gymnasium.spaces.MultiBinary(size)
            self.observation_space = gymnasium.spaces.Dict({"obs": observation, "action_mask": mask})
        self.generator = torch.Generator()

    @staticmethod
    def _sizes(space: gymnasium.Space) -> list[int]:
        if isinstance(space, gymnasium.spaces.Discrete):
            return [int(space.n)]
        if isinstance(space, gymnasium.spaces.MultiDiscrete):
            return [int(n) for n in space.nvec]
        if isinstance(space, gymnasium.spaces.MultiBinary):
            return [2] * int(space.n)
        return []

    def reset(self, seed: int | None = None) -> Obs:
        self.generator.manual_seed(0 if seed is None else seed)
        return self._next()

    def _next(self) -> Obs:
        if not self.sizes:
            self.target = torch.rand(self.num_rows, *self.action_space.shape, generator=self.generator) * 1.6 - 0.8
            self.obs = self.target.clone()
            return self.obs
        self.target = torch.stack([torch.randint(n, (self.num_rows,), generator=self.generator) for n in self.sizes], -1)
        parts = [torch.nn.functional.one_hot(t, n).float() for t, n in zip(self.target.unbind(-1), self.sizes, strict=True)]
        self.obs = torch.cat(parts, -1)
        if not self.masked:
            return self.obs
        # The right choice and its neighbour are allowed.
        self.allowed = torch.cat([part + part.roll(1, -1) for part in parts], -1).clamp(max=1).to(torch.int8)
        return {"obs": self.obs, "action_mask": self.allowed}

    def step(self, action: Tensor) -> Step:
        if self.sizes:
            reward = (action.reshape(self.num_rows, -1) == self.target).float().mean(-1)
        else:
            low, high = torch.as_tensor(self.action_space.low), torch.as_tensor(self.action_space.high)
            self.error = ((2 * action - low - high) / (high - low) - self.target).abs().mean(-1)
            reward = 1.0 - self.error
        ended = torch.rand(self.num_rows, generator=self.generator) < 1 / self.episode
        cut = torch.rand(self.num_rows, generator=self.generator) < 0.5
        active = torch.rand(self.num_rows, generator=self.generator) >= self.inactive
        obs = self._next()
        final = map_obs(Tensor.clone, obs) if bool(ended.any()) else obs
        return Step(obs, reward, ended & ~cut, ended & cut, final, active, {})

    def save_state(self) -> dict[str, Tensor]:
        masks = {"allowed": self.allowed} if self.masked else {}
        return {"generator": self.generator.get_state(), "target": self.target, "obs": self.obs, **masks}

    def load_state(self, state: dict[str, Tensor]) -> Obs:
        self.generator.set_state(state["generator"])
        self.target, self.obs = state["target"].clone(), state["obs"].clone()
        if not self.masked:
            return self.obs
        self.allowed = state["allowed"].clone()
        return {"obs": self.obs, "action_mask": self.allowed}
