"""Action heads: from features to an action distribution, and from a sampled action to what the environment receives."""
from __future__ import annotations

import math
from typing import Any, Literal

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

from wavedash.config import PolicyConfig
from wavedash.errors import UserError
from wavedash.policy.distributions import Categorical, Distribution, Gaussian, MultiCategorical
from wavedash.policy.mlp import linear

POLICY_GAIN = 0.01
"""A small last layer makes the first policy nearly uniform: the choice that matters most in Andrychowicz et al. 2020."""
LOG_STD_RANGE = (-10.0, 2.0)
StdKind = Literal["fixed", "learned", "state"]


class DiscreteHead(nn.Module):
    """One choice among n."""

    action_shape: tuple[int, ...] = ()
    action_dtype = torch.int64

    def __init__(self, features: int, n: int):
        super().__init__()
        self.logits = linear(features, n, POLICY_GAIN)
        self.num_masked = n
        self.max_entropy = math.log(n)

    def forward(self, features: Tensor, mask: Tensor | None = None) -> Distribution:
        return Categorical(self.logits(features), mask)

    def env_action(self, action: Tensor) -> Tensor:
        return action


class MultiDiscreteHead(nn.Module):
    """K independent choices, of any sizes."""

    action_dtype = torch.int64
    layout: Tensor

    def __init__(self, features: int, sizes: list[int], env_shape: tuple[int, ...]):
        super().__init__()
        self.action_shape = (len(sizes),)
        self.env_shape = env_shape
        self.logits = linear(features, sum(sizes), POLICY_GAIN)
        self.num_masked = sum(sizes)
        self.max_entropy = sum(math.log(size) for size in sizes)
        self.register_buffer("layout", MultiCategorical.layout(sizes), persistent=False)

    def forward(self, features: Tensor, mask: Tensor | None = None) -> Distribution:
        return MultiCategorical(self.logits(features), self.layout, mask)

    def env_action(self, action: Tensor) -> Tensor:
        return action if len(self.env_shape) == 1 else action.view(*action.shape[:-1], *self.env_shape)


class GaussianHead(nn.Module):
    """A normal per action dimension, in units where a bounded action range is [-1, 1].

    The unclipped sample is stored and trained on; only the environment receives it scaled and clipped to its bounds.
    """

    action_dtype = torch.float32
    num_masked = 0
    max_entropy = None
    centre: Tensor
    half_range: Tensor
    low: Tensor
    high: Tensor

    def __init__(self, features: int, space: gymnasium.spaces.Box, std: StdKind, initial_std: float):
        super().__init__()
        size = int(np.prod(space.shape))
        self.action_shape = (size,)
        self.env_shape = space.shape
        self.mean = linear(features, size, POLICY_GAIN)
        initial = torch.full((size,), math.log(initial_std))
        self.state_log_std = linear(features, size, POLICY_GAIN) if std == "state" else None
        self.log_std = nn.Parameter(initial, requires_grad=std == "learned")
        low, high = _float32_bounds(space)
        bounded = (high - low).isfinite()
        self.register_buffer("centre", torch.where(bounded, (high + low) / 2, 0.0), persistent=False)
        self.register_buffer("half_range", torch.where(bounded, (high - low) / 2, 1.0), persistent=False)
        self.register_buffer("low", low, persistent=False)
        self.register_buffer("high", high, persistent=False)

    def forward(self, features: Tensor, mask: Tensor | None = None) -> Distribution:
        log_std = self.log_std
        if self.state_log_std is not None:
            log_std = log_std + self.state_log_std(features)
        return Gaussian(self.mean(features), log_std.clamp(*LOG_STD_RANGE))

    def env_action(self, action: Tensor) -> Tensor:
        scaled = torch.addcmul(self.centre, action, self.half_range)
        clipped = torch.clamp(scaled, self.low, self.high)
        return clipped if len(self.env_shape) == 1 else clipped.view(*clipped.shape[:-1], *self.env_shape)


def _float32_bounds(space: gymnasium.spaces.Box) -> tuple[Tensor, Tensor]:
    """Rounded inward, so that a clipped action lies in a space of float64 too (as float32, 0.1 is more than 0.1)."""
    with np.errstate(over="ignore"):  # bounds of 1.8e308 mean no bounds
        low, high = (np.asarray(bound, np.float32).reshape(-1) for bound in (space.low, space.high))
    low = np.where(low < space.low.reshape(-1), np.nextafter(low, np.float32(np.inf)), low)
    high = np.where(high > space.high.reshape(-1), np.nextafter(high, np.float32(-np.inf)), high)
    return torch.from_numpy(low), torch.from_numpy(high)


Head = DiscreteHead | MultiDiscreteHead | GaussianHead


def make_head(features: int, space: gymnasium.Space[Any], config: PolicyConfig) -> Head:
    """The head that fits an action space."""
    spaces = gymnasium.spaces
    if isinstance(space, spaces.Discrete):
        return DiscreteHead(features, int(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        return MultiDiscreteHead(features, [int(n) for n in space.nvec.reshape(-1)], space.nvec.shape)
    if isinstance(space, spaces.MultiBinary):
        return MultiDiscreteHead(features, [2] * int(np.prod(space.shape)), space.shape)
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return GaussianHead(features, space, config.std, config.initial_std)
    raise UserError(
        f"no policy for the action space {space}: use Discrete, MultiDiscrete, MultiBinary or a Box of floats "
        "(wrap the environment to convert its actions)"
    )
