"""Random play, as a policy that has learned nothing plays."""
from __future__ import annotations

import gymnasium
import torch
from torch import Tensor

from wavedash.envs.obs import action_mask
from wavedash.envs.vec_env import Obs, VecEnv


class RandomPlayer:
    """Draws actions that the space and the mask allow, all equally likely."""

    def __init__(self, env: VecEnv, seed: int):
        self.space, self.rows, self.device = env.action_space, env.num_rows, env.device
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, obs: Obs) -> Tensor:
        """Actions of all rows, drawn on the host, so that a seed gives the same actions on all devices."""
        mask = action_mask(obs)
        return self._drawn(None if mask is None else mask.cpu()).to(self.device)

    def _drawn(self, mask: Tensor | None) -> Tensor:
        space = self.space
        if isinstance(space, gymnasium.spaces.Box):
            low, high = (torch.from_numpy(x.clip(-1e6, 1e6)) for x in (space.low, space.high))
            return low + (high - low) * torch.rand(self.rows, *low.shape, generator=self.generator)
        if isinstance(space, gymnasium.spaces.Discrete):
            return self._draw(mask, int(space.n))
        sizes: list[int] = space.nvec.tolist() if isinstance(space, gymnasium.spaces.MultiDiscrete) else [2] * space.shape[0]  # type: ignore[index]
        masks = [None] * len(sizes) if mask is None else mask.split(sizes, -1)  # type: ignore[no-untyped-call]
        return torch.stack([self._draw(part, n) for part, n in zip(masks, sizes, strict=True)], -1)

    def _draw(self, mask: Tensor | None, n: int) -> Tensor:
        allowed = torch.ones(self.rows, n) if mask is None else mask.float()
        return torch.multinomial(allowed, 1, generator=self.generator).squeeze(-1)
