"""KL divergence of one action distribution from another of the same kind, of which only its numbers are kept."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.policy.distributions import Beta, Categorical, Distribution, Gaussian, MultiCategorical, TanhGaussian


def numbers_of(distribution: Distribution) -> Tensor:
    """Returns what is kept of a distribution: [..., n] log-probabilities, [..., K, most] of K choices, or [..., 2 A], two
    numbers of each continuous dimension. Zeros are some distribution too: rollouts overwrite labels of inactive steps with
    them."""
    if isinstance(distribution, Categorical):
        return distribution.log_probs
    if isinstance(distribution, MultiCategorical):
        return distribution.choices.log_probs
    if isinstance(distribution, Beta):
        return torch.cat([distribution.alpha, distribution.beta], -1).log()
    normal = _normal(distribution)
    return torch.cat([normal.mean, normal.log_std.expand_as(normal.mean)], -1)


def divergence(numbers: Tensor, distribution: Distribution) -> Tensor:
    """KL(the one with these numbers || distribution), [...], summed over choices or dimensions. It has a gradient with respect
    to the distribution. What both forbid does not count."""
    if isinstance(distribution, Categorical):
        return _of_choice(numbers, distribution.log_probs)
    if isinstance(distribution, MultiCategorical):
        return _of_choice(numbers, distribution.choices.log_probs).sum(-1)
    first, second = numbers.chunk(2, -1)
    if isinstance(distribution, Beta):
        return _of_betas(first.exp(), second.exp(), distribution.alpha, distribution.beta).sum(-1)
    normal = _normal(distribution)  # squashing both in the same way changes nothing
    narrower = second - normal.log_std
    off = (first - normal.mean) * (-normal.log_std).exp()
    return (0.5 * ((2.0 * narrower).exp() + off.square() - 1.0) - narrower).sum(-1)


def _normal(distribution: Distribution) -> Gaussian:
    normal = distribution.normal if isinstance(distribution, TanhGaussian) else distribution
    assert isinstance(normal, Gaussian)
    return normal


def _of_choice(log_probs: Tensor, other: Tensor) -> Tensor:
    return (log_probs.exp() * (log_probs - other)).sum(-1)


def _of_betas(a: Tensor, b: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """KL(Beta(a, b) || Beta(alpha, beta)) of each dimension."""
    normalizers = torch.lgamma(alpha) + torch.lgamma(beta) - torch.lgamma(alpha + beta) \
        - (torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b))
    return normalizers + (a - alpha) * torch.digamma(a) + (b - beta) * torch.digamma(b) \
        + (alpha - a + beta - b) * torch.digamma(a + b)
