"""Action heads turn features into an action distribution, and a sampled action into what the environment receives.

The deviation of a normal may be that of generalised state-dependent exploration (gSDE, Raffin et al. 2020, arXiv 2005.05719):
the noise is the features times a random matrix that stays for several steps. For the update, each single step is a normal whose
deviation follows from the features; the matrix matters only for how the steps of a rollout are drawn.
"""
from __future__ import annotations

import math
from typing import Any, Literal

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

from wavedash.config import GSDEConfig, PolicyConfig
from wavedash.errors import UserError
from wavedash.policy.distributions import Beta, Categorical, Distribution, Gaussian, MultiCategorical, TanhGaussian
from wavedash.policy.mlp import linear

POLICY_GAIN = 0.01
"""A small last layer makes the initial policy nearly uniform: the choice that matters most in Andrychowicz et al. 2020."""
LOG_STD_RANGE = (-10.0, 2.0)
StdKind = Literal["fixed", "learned", "state", "gsde"]
BOUND_EDGE = 1e-3
"""How far from -1 and 1 a demonstrated action at its bound is learned, where a distribution does not reach its bounds"""
VARIANCE_FLOOR = 1e-6
"""It is added to the variance of gSDE, so that there is a density even where all features are zero."""


class DiscreteHead(nn.Module):
    """One choice among n."""

    action_shape: tuple[int, ...] = ()
    action_dtype = torch.int64

    def __init__(self, features: int, n: int, floor: float = 0.0):
        super().__init__()
        self.logits = linear(features, n, POLICY_GAIN)
        self.floor = floor
        self.num_masked = n
        self.max_entropy = math.log(n)

    def forward(self, features: Tensor, mask: Tensor | None = None) -> Distribution:
        return Categorical(self.logits(features), mask, self.floor)

    def env_action(self, action: Tensor) -> Tensor:
        return action

    def stored_action(self, action: Tensor) -> Tensor:
        """Returns what is stored where the environment receives this: the inverse of `env_action`."""
        return action.long()


class MultiDiscreteHead(nn.Module):
    """K independent choices, of any sizes."""

    action_dtype = torch.int64
    layout: Tensor

    def __init__(self, features: int, sizes: list[int], env_shape: tuple[int, ...], floor: float = 0.0):
        super().__init__()
        self.floor = floor
        self.action_shape = (len(sizes),)
        self.env_shape = env_shape
        self.logits = linear(features, sum(sizes), POLICY_GAIN)
        self.num_masked = sum(sizes)
        self.max_entropy = sum(math.log(size) for size in sizes)
        self.register_buffer("layout", MultiCategorical.layout(sizes), persistent=False)

    def forward(self, features: Tensor, mask: Tensor | None = None) -> Distribution:
        return MultiCategorical(self.logits(features), self.layout, mask, self.floor)

    def env_action(self, action: Tensor) -> Tensor:
        return action if len(self.env_shape) == 1 else action.view(*action.shape[:-1], *self.env_shape)

    def stored_action(self, action: Tensor) -> Tensor:
        """Returns what is stored where the environment receives this, flat [..., K]: the inverse of `env_action`."""
        return action.long()


class ContinuousHead(nn.Module):
    """The base of continuous heads. Actions are in units where a bounded range is [-1, 1]; `env_action` converts them."""

    action_dtype = torch.float32
    num_masked = 0
    centre: Tensor
    half_range: Tensor
    low: Tensor
    high: Tensor

    def __init__(self, space: gymnasium.spaces.Box):
        super().__init__()
        self.size = int(np.prod(space.shape))
        self.action_shape = (self.size,)
        self.env_shape = space.shape
        low, high = _float32_bounds(space)
        self.bounded = bool((high - low).isfinite().all())
        finite = (high - low).isfinite()
        self.register_buffer("centre", torch.where(finite, (high + low) / 2, 0.0), persistent=False)
        self.register_buffer("half_range", torch.where(finite, (high - low) / 2, 1.0), persistent=False)
        self.register_buffer("low", low, persistent=False)
        self.register_buffer("high", high, persistent=False)

    @property
    def max_entropy(self) -> float | None:
        """The entropy of the uniform distribution, where there is one."""
        return None

    def unit(self, action: Tensor) -> Tensor:
        """Returns a stored action in units where the range is [-1, 1]."""
        return action

    def from_unit(self, unit: Tensor) -> Tensor:
        """Returns the stored action of one in these units: the inverse of `unit`. Where a distribution does not reach its
        bounds, they count as an action just inside of them, which has a finite density."""
        return unit

    @property
    def unit_bounds(self) -> tuple[Tensor, Tensor]:
        """The bounds of each dimension in these units: -1 and 1, or what there is where one of them is infinite."""
        finite = (self.high - self.low).isfinite()
        return self.low.masked_fill(finite, -1.0), self.high.masked_fill(finite, 1.0)

    def env_action(self, action: Tensor) -> Tensor:
        scaled = torch.addcmul(self.centre, self.unit(action), self.half_range)
        clipped = torch.clamp(scaled, self.low, self.high)
        return clipped if len(self.env_shape) == 1 else clipped.view(*clipped.shape[:-1], *self.env_shape)

    def stored_action(self, action: Tensor) -> Tensor:
        """Returns what is stored where the environment receives this, flat [..., A]: the inverse of `env_action`, but for what
        was clipped."""
        clipped = torch.clamp(action, self.low, self.high)
        return self.from_unit((clipped - self.centre) / self.half_range)


class GaussianHead(ContinuousHead):
    """A normal per action dimension. The sample is stored and trained on unclipped; only the environment sees it clipped."""

    def __init__(self, features: int, space: gymnasium.spaces.Box, config: PolicyConfig):
        super().__init__(space)
        std: StdKind = config.std
        self.mean = linear(features, self.size, POLICY_GAIN)
        self.state_log_std = linear(features, self.size, POLICY_GAIN) if std == "state" else None
        self.gsde: GSDEConfig | None = config.gsde if std == "gsde" else None
        shape = (self.size,) if self.gsde is None else (features, self.size)
        self.log_std = nn.Parameter(torch.full(shape, math.log(config.initial_std)), requires_grad=std in ("learned", "gsde"))
        """The log-deviation of each action [A]; with gSDE, of each weight of the noise matrix [F, A]"""

    def forward(self, features: Tensor, mask: Tensor | None = None) -> Distribution:
        return self.distribution(self.mean(features), self._log_std(features))

    def _log_std(self, features: Tensor) -> Tensor:
        if self.gsde is not None:
            # The noise is features @ matrix, whose weights are independent. Only the deviations learn how large it should be:
            # without detach() the features would be changed in order to explore more or less.
            return 0.5 * (features.detach().square() @ self.noise_std().square() + VARIANCE_FLOOR).log()
        log_std = self.log_std
        if self.state_log_std is not None:
            log_std = log_std + self.state_log_std(features)
        return log_std.clamp(*LOG_STD_RANGE)

    def noise_std(self) -> Tensor:
        """Returns the deviation of each weight of the noise matrix of gSDE, [F, A]."""
        assert self.gsde is not None
        if not self.gsde.expln:
            return self.log_std.clamp(*LOG_STD_RANGE).exp()
        # expln is e^x up to 0 and 1 + log(1 + x) above: positive, smooth, and slow to grow (appendix of the paper).
        return torch.where(self.log_std > 0, 1.0 + self.log_std.clamp(min=0.0).log1p(), self.log_std.clamp(max=0.0).exp())

    def draw_noise(self, rows: int, generator: torch.Generator | None) -> Tensor | None:
        """Draws a noise matrix of gSDE for each row, [N, F, A]; returns None without gSDE."""
        if self.gsde is None:
            return None
        std = self.noise_std()
        return std * torch.empty(rows, *std.shape, device=std.device).normal_(generator=generator)

    def explore(self, distribution: Distribution, features: Tensor, noise: Tensor) -> Tensor:
        """Returns the mean plus the noise that these matrices of gSDE make of the features."""
        return distribution.mode() + torch.einsum("nf,nfa->na", features, noise)

    def distribution(self, mean: Tensor, log_std: Tensor) -> Distribution:
        return Gaussian(mean, log_std)


class TanhGaussianHead(GaussianHead):
    """A normal squashed into the bounds by tanh. The sample is stored as it was before squashing."""

    quadrature: Tensor

    def __init__(self, features: int, space: gymnasium.spaces.Box, config: PolicyConfig):
        super().__init__(features, space, config)
        self.register_buffer("quadrature", TanhGaussian.quadrature(), persistent=False)

    def distribution(self, mean: Tensor, log_std: Tensor) -> Distribution:
        return TanhGaussian(mean, log_std, self.quadrature)

    @property
    def max_entropy(self) -> float | None:
        return self.size * math.log(2.0)

    def unit(self, action: Tensor) -> Tensor:
        return action.tanh()

    def from_unit(self, unit: Tensor) -> Tensor:
        return unit.clamp(-1.0 + BOUND_EDGE, 1.0 - BOUND_EDGE).atanh()


class ConfinedGaussianHead(ContinuousHead):
    """A normal whose mean stays in [-1, 1] and whose deviation stays in a range; both are outputs of the network (rlgym-ppo's
    continuous policy). The unclipped sample is stored and trained on."""

    def __init__(self, features: int, space: gymnasium.spaces.Box, std_range: tuple[float, float]):
        super().__init__(space)
        self.outputs = linear(features, 2 * self.size, POLICY_GAIN)
        self.std_range = std_range

    def forward(self, features: Tensor, mask: Tensor | None = None) -> Distribution:
        mean, position = self.outputs(features).float().tanh().chunk(2, -1)
        least, greatest = self.std_range
        return Gaussian(mean, (least + (greatest - least) * (position + 1.0) / 2.0).log())


class BetaHead(ContinuousHead):
    """A Beta per bounded action dimension. It is never outside the bounds, so nothing is clipped (Chou et al. 2017)."""

    def __init__(self, features: int, space: gymnasium.spaces.Box):
        super().__init__(space)
        self.shape = linear(features, 2 * self.size, POLICY_GAIN)

    def forward(self, features: Tensor, mask: Tensor | None = None) -> Distribution:
        alpha, beta = (1.0 + nn.functional.softplus(self.shape(features).float())).chunk(2, -1)  # above 1: one peak
        return Beta(alpha, beta)

    @property
    def max_entropy(self) -> float | None:
        return self.size * math.log(2.0)

    def unit(self, action: Tensor) -> Tensor:
        return 2.0 * action - 1.0

    def from_unit(self, unit: Tensor) -> Tensor:
        return (unit.clamp(-1.0 + BOUND_EDGE, 1.0 - BOUND_EDGE) + 1.0) / 2.0


def _float32_bounds(space: gymnasium.spaces.Box) -> tuple[Tensor, Tensor]:
    """Rounds bounds inward, so that a clipped action lies in a space of float64 too (0.1 in float32 is more than 0.1)."""
    with np.errstate(over="ignore"):  # bounds of 1.8e308 mean no bounds
        low, high = (np.asarray(bound, np.float32).reshape(-1) for bound in (space.low, space.high))
    low = np.where(low < space.low.reshape(-1), np.nextafter(low, np.float32(np.inf)), low)
    high = np.where(high > space.high.reshape(-1), np.nextafter(high, np.float32(-np.inf)), high)
    return torch.from_numpy(low), torch.from_numpy(high)


Head = DiscreteHead | MultiDiscreteHead | GaussianHead | TanhGaussianHead | ConfinedGaussianHead | BetaHead


def make_head(features: int, space: gymnasium.Space[Any], config: PolicyConfig) -> Head:
    """Makes the head that fits an action space."""
    spaces = gymnasium.spaces
    if isinstance(space, spaces.Discrete):
        return DiscreteHead(features, int(space.n), config.action_floor)
    if isinstance(space, spaces.MultiDiscrete):
        return MultiDiscreteHead(features, [int(n) for n in space.nvec.reshape(-1)], space.nvec.shape, config.action_floor)
    if isinstance(space, spaces.MultiBinary):
        return MultiDiscreteHead(features, [2] * int(np.prod(space.shape)), space.shape, config.action_floor)
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return _continuous_head(features, space, config)
    raise UserError(
        f"no policy for the action space {space}: use Discrete, MultiDiscrete, MultiBinary or a Box of floats "
        "(wrap the environment to convert its actions)"
    )


def _continuous_head(features: int, space: gymnasium.spaces.Box, config: PolicyConfig) -> Head:
    if config.action_floor:
        raise UserError(f"policy.action_floor={config.action_floor} is a probability of discrete actions, but the action space "
                        f"is {space}: set policy.action_floor=0")
    if config.distribution == "beta":
        head: Head = BetaHead(features, space)
    elif config.distribution == "confined":
        head = ConfinedGaussianHead(features, space, config.std_range)
    else:
        kind = TanhGaussianHead if config.distribution == "tanh" else GaussianHead
        head = kind(features, space, config)
    if config.distribution != "gaussian" and not head.bounded:
        raise UserError(f"policy.distribution={config.distribution} needs an action space with bounds, but it is {space}; "
                        "use policy.distribution=gaussian, or bound the actions with gymnasium.wrappers.RescaleAction")
    return head
