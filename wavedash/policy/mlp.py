"""Multi-layer perceptrons with the initialisation that PPO needs: orthogonal weights, zero biases."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "relu": torch.relu, "elu": F.elu, "silu": F.silu}


def linear(inputs: int, outputs: int, gain: float) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class MLP(nn.Module):
    """Hidden layers, each followed by the activation; heads are added by their owners."""

    def __init__(self, inputs: int, hidden: Sequence[int], activation: str):
        super().__init__()
        sizes = [inputs, *hidden]
        self.outputs = sizes[-1]
        self.activation = activation
        self.layers = nn.ModuleList(linear(a, b, math.sqrt(2)) for a, b in zip(sizes, hidden, strict=False))

    def forward(self, x: Tensor) -> Tensor:
        activation = ACTIVATIONS[self.activation]
        layer: nn.Linear
        for layer in self.layers:  # type: ignore[assignment]
            # Not layer(x): on a CPU the module call costs as much as a small matrix product.
            x = activation(F.linear(x, layer.weight, layer.bias))
        return x
