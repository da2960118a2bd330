"""An evaluation is what the current weights say about stored steps, with the backward pass to these weights."""
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
        """Multiplies by `factor`, if there is one."""
        return self if factor is None else OutputGradients(*(x * factor for x in self))


class Evaluation(NamedTuple):
    """Log-probability, entropy and value of a batch of stored steps under the current weights."""

    log_prob: Tensor
    entropy: Tensor
    value: Tensor
    backward: Callable[[OutputGradients], None]
    """Adds the gradient of the loss, given that of these outputs, to the `grad` of every parameter. It may be called once."""


def autograd_evaluation(log_prob: Tensor, entropy: Tensor, value: Tensor) -> Evaluation:
    """Returns an evaluation whose backward pass is autograd's."""

    def backward(gradients: OutputGradients) -> None:
        outputs = [(x, gradient) for x, gradient in zip((log_prob, entropy, value), gradients, strict=True) if x.requires_grad]
        torch.autograd.backward([x for x, _ in outputs], [gradient for _, gradient in outputs])

    return Evaluation(log_prob.detach(), entropy.detach(), value.detach(), backward)
