"""Action distributions over the last dimension(s) of a batch. Small on purpose: no validation, no lazy properties.

Log-probabilities and entropies of several action dimensions are sums over the dimensions, in float32.
"""
from __future__ import annotations

import math

import torch
from torch import Tensor

LOG_2PI = math.log(2 * math.pi)
FORBIDDEN = -1e9
"""Logit of a masked action: its probability is exactly 0 in float32, and 0 * log 0 stays finite."""


class Categorical:
    """One choice among n. Actions: int64 [...]; logits [..., n]."""

    def __init__(self, logits: Tensor, mask: Tensor | None = None):
        logits = logits.float()
        if mask is not None:
            logits = logits.masked_fill(mask == 0, FORBIDDEN)
        self.log_probs = logits.log_softmax(-1)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        # The exponential race: argmin of e_i / p_i is distributed as p. Unlike torch.multinomial it never waits for the device.
        race = torch.empty_like(self.log_probs).exponential_(generator=generator)
        return (self.log_probs.exp() / race).argmax(-1)

    def mode(self) -> Tensor:
        return self.log_probs.argmax(-1)

    def log_prob(self, action: Tensor) -> Tensor:
        return self.log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        return -(self.log_probs.exp() * self.log_probs).sum(-1)


class MultiCategorical:
    """K independent choices of different sizes. Actions: int64 [..., K]; logits and mask are concatenated, [..., sum(sizes)].

    The concatenated logits are laid out as [..., K, max(sizes)], short rows padded with forbidden actions, so that
    all choices are one batch.
    """

    def __init__(self, logits: Tensor, layout: Tensor, mask: Tensor | None = None):
        padded = logits.float()
        if mask is not None:
            padded = padded.masked_fill(mask == 0, FORBIDDEN)
        padded = torch.cat([padded, padded.new_full((*padded.shape[:-1], 1), FORBIDDEN)], -1)
        self.choices = Categorical(padded[..., layout])

    @staticmethod
    def layout(sizes: list[int]) -> Tensor:
        """Index of every choice's logits, [K, max(sizes)]; padding points one past the end."""
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
    """Independent normals. Actions: float32 [..., D], unclipped: the density is of what was sampled, not of what was done."""

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


Distribution = Categorical | MultiCategorical | Gaussian
