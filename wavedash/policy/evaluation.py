"""What a policy thinks of actions taken earlier, and the way back from there to its weights."""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class OutputGradients(NamedTuple):
    """Derivatives of a loss with respect to the parts of an `Evaluation`, of the same shape."""

    log_prob: Tensor
    entropy: Tensor
    value: Tensor

    def scaled(self, factor: Tensor | None) -> OutputGradients:
        """Times `factor`; as they are without one."""
        return self if factor is None else OutputGradients(*(x * factor for x in self))


class Evaluation(NamedTuple):
    """What the policy says about a batch of stored steps."""

    log_prob: Tensor
    entropy: Tensor
    value: Tensor
    backward: Callable[[OutputGradients], None]
    """Adds the loss's gradient, given those in the outputs, to the `grad` of every parameter. To be called once."""


def by_autograd(log_prob: Tensor, entropy: Tensor, value: Tensor) -> Evaluation:
    """An evaluation whose way back is autograd's."""

    def backward(gradients: OutputGradients) -> None:
        ends = [(x, gradient) for x, gradient in zip((log_prob, entropy, value), gradients, strict=True) if x.requires_grad]
        torch.autograd.backward([x for x, _ in ends], [gradient for _, gradient in ends])

    return Evaluation(log_prob.detach(), entropy.detach(), value.detach(), backward)
