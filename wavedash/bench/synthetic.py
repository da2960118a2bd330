"""An environment that costs next to nothing on any device, so that benchmarks measure the learner."""
from __future__ import annotations

import gymnasium
import torch
from torch import Tensor

from wavedash.envs.vec_env import Obs, Step, VecEnv


class SyntheticEnv(VecEnv):
    """Rows drift at random; in each state one action pays best, so there is something to learn. Episodes end at random.

    Observation and action table are about as large as those of Rocket League 1v1.
    """

    capturable = True

    def __init__(self, rows: int, device: torch.device | str, features: int = 128, actions: int = 90, episode: int = 300):
        self.num_rows, self.device = rows, torch.device(device)
        self.observation_space = gymnasium.spaces.Box(-10.0, 10.0, (features,))
        self.action_space = gymnasium.spaces.Discrete(actions)
        self.ends = 1.0 / episode
        generator = torch.Generator().manual_seed(0)
        self.right = (torch.randn(features, actions, generator=generator) / features**0.5).to(self.device)
        self.state = torch.zeros(rows, features, device=self.device)

    def reset(self, seed: int | None = None) -> Obs:
        self.state.normal_()
        return self.state

    def step(self, action: Tensor) -> Step:
        reward = (self.state @ self.right).gather(-1, action.unsqueeze(-1)).squeeze(-1)
        self.state.mul_(0.9).add_(torch.randn_like(self.state), alpha=0.4)
        chance = torch.rand(self.num_rows, device=self.device)
        terminated, truncated = chance < 0.5 * self.ends, (chance >= 0.5 * self.ends) & (chance < self.ends)
        final_obs = self.state.clone()
        self.state.masked_fill_((terminated | truncated).unsqueeze(-1), 0.0)
        return Step(self.state, reward, terminated, truncated, final_obs, torch.ones_like(terminated), {})
