"""Small environments written directly against `VecEnv`, for proofs about the learner."""
from __future__ import annotations

import gymnasium
import numpy as np
import torch
from torch import Tensor

from wavedash.envs.obs import map_obs
from wavedash.envs.vec_env import Obs, Step, VecEnv


class TapeEnv(VecEnv):
    """It returns given data [T, N, ...] whatever the actions, starts over at its end, and never syncs with a device."""

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


class IdentityEnv(VecEnv):
    """The reward is 1 for the action that the observation says, and less the further off. Episodes end at random.

    It has any action space; `masked` forbids every wrong discrete choice but one; `inactive` is the share of inactive rows.
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
            low, high = (torch.as_tensor(getattr(self.action_space, bound)) for bound in ("low", "high"))
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


class ScrambledEnv(VecEnv):
    """Everything follows from one integer per row, scrambled by integer arithmetic: without a random generator it is the same
    on every device, can be captured in a CUDA graph, and goes on exactly from its saved state. The action decides the reward
    and what comes next. Episodes end at random, and rows are inactive at times.

    With `senses` an observation is a dictionary with a picture and a vector for both networks and a key `truth` for the critic.
    """

    capturable = True

    def __init__(self, action_space: gymnasium.Space, rows: int, masked: bool = False, senses: bool = False, device="cpu"):
        self.num_rows, self.action_space, self.device = rows, action_space, torch.device(device)
        sizes = IdentityEnv._sizes(action_space)
        parts = {"obs": gymnasium.spaces.Box(-1.0, 1.0, (4,))}
        if senses:
            parts = {
                "camera": gymnasium.spaces.Box(0, 255, (8, 8, 1), np.uint8),
                "joints": gymnasium.spaces.Box(-1.0, 1.0, (3,)),
                "truth": gymnasium.spaces.Box(-1.0, 1.0, (2,)),
            }
        if masked:
            parts["action_mask"] = gymnasium.spaces.MultiBinary(sum(sizes))
        self.parts = parts
        self.observation_space = gymnasium.spaces.Dict(parts) if senses or masked else parts["obs"]
        self.widths = [int(np.prod(part.shape)) for part in parts.values()]
        self.first_choices = torch.tensor([i == 0 for n in sizes for i in range(n)], device=self.device)
        self.salts = 7919 * torch.arange(2 * sum(self.widths) + 4, device=self.device)
        self.number = torch.zeros(rows, dtype=torch.int64, device=self.device)

    def reset(self, seed: int | None = None) -> Obs:
        rows = torch.arange(self.num_rows, device=self.device)
        self.number.copy_(self._scrambled(rows + 1000 * ((seed or 0) % 1000)))
        return self._story()[0]

    def step(self, action: Tensor) -> Step:
        action = (action * 1000).long() if action.is_floating_point() else action
        self.number.copy_(self._scrambled(self.number + action.reshape(self.num_rows, -1).sum(-1)))
        obs, final_obs, (reward, ends, cut, away) = self._story()
        ended = ends < 0.2
        return Step(obs, 2 * reward - 1, ended & (cut < 0.5), ended & (cut >= 0.5), final_obs, away > 0.2, {})

    def save_state(self) -> dict[str, Tensor]:
        return {"number": self.number}

    def load_state(self, state: dict[str, Tensor]) -> Obs:
        self.number.copy_(state["number"])
        return self._story()[0]

    @staticmethod
    def _scrambled(x: Tensor) -> Tensor:
        for factor in (0x2C1B3C6D, 0x297A2D39, 0x1B56C4E9):
            x = ((x ^ (x >> 15)) * factor) & 0x7FFFFFFF
        return x ^ (x >> 13)

    def _story(self) -> tuple[Obs, Obs, tuple[Tensor, ...]]:
        """An observation, a last observation, and four numbers in [0, 1) per row."""
        draws = self._scrambled(self.number.unsqueeze(-1) + self.salts).float() / 2.0**31
        obs, final_obs, rest = draws.split([sum(self.widths), sum(self.widths), 4], -1)
        return self._obs(obs), self._obs(final_obs), rest.unbind(-1)

    def _obs(self, draws: Tensor) -> Obs:
        obs: dict[str, Tensor] = {}
        for (key, part), values in zip(self.parts.items(), draws.split(self.widths, -1), strict=True):
            if key == "camera":
                obs[key] = (255 * values).to(torch.uint8).view(-1, *part.shape)
            elif key == "action_mask":  # of every choice at least the first is allowed
                obs[key] = ((values < 0.6) | self.first_choices).to(torch.int8)
            else:
                obs[key] = 2 * values - 1
        return obs["obs"] if len(obs) == 1 else obs
