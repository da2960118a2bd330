"""What a policy thinks of actions taken earlier, and the way back from there to its weights."""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Slopes(NamedTuple):
    """Derivatives of a loss with respect to the parts of an `Evaluation`, of the same shape."""

    log_prob: Tensor
    entropy: Tensor
    value: Tensor

    def scaled(self, factor: Tensor | None) -> Slopes:
        """Times `factor`; as they are without one."""
        return self if factor is None else Slopes(*(x * factor for x in self))


class Evaluation(NamedTuple):
    """Of a batch of stored steps."""

    log_prob: Tensor
    entropy: Tensor
    value: Tensor
    pull_back: Callable[[Slopes], None]
    """Adds the loss's gradient, given its slopes, to the `grad` of every parameter. To be called once."""


def by_autograd(log_prob: Tensor, entropy: Tensor, value: Tensor) -> Evaluation:
    """An evaluation whose way back is autograd's."""

    def pull_back(slopes: Slopes) -> None:
        ends = [(x, slope) for x, slope in zip((log_prob, entropy, value), slopes, strict=True) if x.requires_grad]
        torch.autograd.backward([x for x, _ in ends], [slope for _, slope in ends])

    return Evaluation(log_prob.detach(), entropy.detach(), value.detach(), pull_back)
