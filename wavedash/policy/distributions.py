"""Action distributions over the last dimension(s) of a batch. They are small on purpose: no validation, no lazy properties.

Log-probabilities and entropies of several action dimensions are sums over the dimensions, in float32.
"""
from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

LOG_2PI = math.log(2 * math.pi)
FORBIDDEN = -1e9
"""The logit of a masked action: its probability is exactly 0 in float32, and 0 * log 0 stays finite."""


QUADRATURE_NODES = 16
BETA_EDGE = 1e-6


class Categorical:
    """One choice among n. Actions are int64 [...], logits [..., n]."""

    def __init__(self, logits: Tensor, mask: Tensor | None = None, floor: float = 0.0):
        """`floor` is the share of a uniform choice among the allowed actions that is mixed in:
        p = (1 - floor) softmax(logits) + floor / allowed actions."""
        logits = logits.float()
        if mask is not None:
            logits = logits.masked_fill(mask == 0, FORBIDDEN)
        self.log_probs = logits.log_softmax(-1)
        if floor > 0.0:
            allowed = self.log_probs > 0.5 * FORBIDDEN  # all, where a mask allows nothing, as without a floor
            mixed = (1.0 - floor) * self.probs + floor / allowed.sum(-1, keepdim=True)
            # A logarithm of 0 would have no gradient that is a number, so forbidden actions are filled before and after it.
            self.log_probs = mixed.masked_fill(~allowed, 1.0).log().masked_fill(~allowed, FORBIDDEN)

    @property
    def probs(self) -> Tensor:
        """exp(log_probs). On a CPU `exp` is seven times slower where numbers underflow, as for masked actions; softmax gives
        the same and is not."""
        return self.log_probs.exp() if self.log_probs.is_cuda else self.log_probs.softmax(-1)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        # The exponential race: argmin of e_i / p_i is distributed as p. Unlike torch.multinomial it has no host sync.
        return (self.probs / _exponentials(self.log_probs, generator)).argmax(-1)

    def mode(self) -> Tensor:
        return self.log_probs.argmax(-1)

    def log_prob(self, action: Tensor) -> Tensor:
        return self.log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        return -(self.probs * self.log_probs).sum(-1)


class MultiCategorical:
    """K independent choices of different sizes. Actions are int64 [..., K]; logits and mask are concatenated, [...,
    sum(sizes)].

    The concatenated logits are laid out as [..., K, max(sizes)], short rows padded with forbidden actions, so that
    all choices are one batch.
    """

    def __init__(self, logits: Tensor, layout: Tensor, mask: Tensor | None = None, floor: float = 0.0):
        """`floor` is that of every choice, see `Categorical`."""
        padded = logits.float()
        if mask is not None:
            padded = padded.masked_fill(mask == 0, FORBIDDEN)
        padded = torch.cat([padded, padded.new_full((*padded.shape[:-1], 1), FORBIDDEN)], -1)
        self.choices = Categorical(padded[..., layout], floor=floor)

    @staticmethod
    def layout(sizes: list[int]) -> Tensor:
        """Returns the indices of the logits of every choice, [K, max(sizes)]; padding points one past the end."""
        layout = torch.full((len(sizes), max(sizes)), sum(sizes))
        for row, size in enumerate(sizes):
            layout[row, :size] = torch.arange(size) + sum(sizes[:row])
        return layout

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        return self.choices.sample(generator)

    def mode(self) -> Tensor:
        return self.choices.mode()

    def log_prob(self, action: Tensor) -> Tensor:
        return self.choices.log_prob(action).sum(-1)

    def entropy(self) -> Tensor:
        return self.choices.entropy().sum(-1)


class Gaussian:
    """Independent normals. Actions are float32 [..., D], not clipped: the density is that of the sample, not of the action that
    the environment was given."""

    def __init__(self, mean: Tensor, log_std: Tensor):
        self.mean = mean.float()
        self.log_std = log_std.float()

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        noise = torch.empty_like(self.mean).normal_(generator=generator)
        return self.mean + self.log_std.exp() * noise

    def mode(self) -> Tensor:
        return self.mean

    def log_prob(self, action: Tensor) -> Tensor:
        standardized = (action - self.mean) * (-self.log_std).exp()
        return -(0.5 * standardized.square() + self.log_std + 0.5 * LOG_2PI).sum(-1)

    def entropy(self) -> Tensor:
        return (self.log_std + 0.5 * (1 + LOG_2PI)).expand_as(self.mean).sum(-1)


class TanhGaussian:
    """Normals squashed to (-1, 1) by tanh. Actions are float32 [..., D], stored before squashing, so that no precision is lost
    near the bounds; densities are those of the squashed action."""

    def __init__(self, mean: Tensor, log_std: Tensor, quadrature: Tensor):
        self.normal, self._quadrature = Gaussian(mean, log_std), quadrature

    @staticmethod
    def quadrature() -> Tensor:
        """Returns nodes and weights of E[f(z)], z standard normal (Gauss-Hermite), [2, nodes]."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE_NODES)  # type: ignore[no-untyped-call, unused-ignore]
        return torch.from_numpy(np.stack([nodes, weights / weights.sum()])).float()

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        return self.normal.sample(generator)

    def mode(self) -> Tensor:
        """Returns the mode of the normal distribution, which the mode of the squashed density tends to as the deviation
        shrinks."""
        return self.normal.mode()

    def log_prob(self, action: Tensor) -> Tensor:
        return self.normal.log_prob(action) - _log_tanh_derivative(action).sum(-1)

    def entropy(self) -> Tensor:
        """Computes H(normal) + E[log tanh'(x)]. The expectation is by quadrature, so it is smooth and deterministic."""
        nodes, weights = self._quadrature.unbind(0)
        points = self.normal.mean.unsqueeze(-1) + self.normal.log_std.exp().unsqueeze(-1) * nodes
        return self.normal.entropy() + (_log_tanh_derivative(points) @ weights).sum(-1)


def _log_tanh_derivative(x: Tensor) -> Tensor:
    """Computes log tanh'(x) = log(1 - tanh(x)^2), without cancellation at large |x|."""
    return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class Beta:
    """Independent Betas on bounded actions. Actions are float32 [..., D] in (0, 1); densities are in units where the range is
    [-1, 1], so that entropies can be compared with those of the other continuous distributions."""

    def __init__(self, alpha: Tensor, beta: Tensor):
        self.alpha, self.beta = alpha.float(), beta.float()

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        first = torch._standard_gamma(self.alpha, generator=generator)
        second = torch._standard_gamma(self.beta, generator=generator)
        # Samples stay away from 0 and 1, where the log-density is infinite.
        return (first / (first + second)).clamp(BETA_EDGE, 1.0 - BETA_EDGE)

    def mode(self) -> Tensor:
        """Returns the mode, which exists because alpha, beta > 1."""
        return (self.alpha - 1.0) / (self.alpha + self.beta - 2.0)

    def _log_normalizer(self) -> Tensor:
        return torch.lgamma(self.alpha) + torch.lgamma(self.beta) - torch.lgamma(self.alpha + self.beta)

    def log_prob(self, action: Tensor) -> Tensor:
        shape = (self.alpha - 1.0) * action.log() + (self.beta - 1.0) * torch.log1p(-action)
        return (shape - self._log_normalizer() - math.log(2.0)).sum(-1)

    def entropy(self) -> Tensor:
        total = self.alpha + self.beta
        shape = (self.alpha - 1.0) * torch.digamma(self.alpha) + (self.beta - 1.0) * torch.digamma(self.beta)
        return (self._log_normalizer() - shape + (total - 2.0) * torch.digamma(total) + math.log(2.0)).sum(-1)


Distribution = Categorical | MultiCategorical | Gaussian | TanhGaussian | Beta


def _exponentials(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draws exponentially distributed numbers, which are never 0."""
    if like.is_cuda:
        return torch.empty_like(like).exponential_(generator=generator)
    # On a CPU torch's own sampler takes three times as long. Uniform numbers are below 1, so their logarithms are below 0.
    return torch.rand(like.shape, dtype=torch.float64, generator=generator).log_().neg_().to(like.dtype)
