"""Multi-layer perceptrons with the initialisation that PPO likes: orthogonal weights, zero biases; or torch's own."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh, "relu": torch.relu, "elu": F.elu, "silu": F.silu, "gelu": F.gelu,
}


def linear(inputs: int, outputs: int, gain: float) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def initialize_as_torch_does(network: nn.Module) -> None:
    """Every layer of a network draws its weights and biases anew, by the rule of its own kind."""
    for module in network.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()  # type: ignore[operator]


class MLP(nn.Module):
    """Hidden layers, each followed by the activation; heads are added by their owners."""

    def __init__(self, inputs: int, hidden: Sequence[int], activation: str):
        super().__init__()
        sizes = [inputs, *hidden]
        self.outputs = sizes[-1]
        self.activation = activation
        layers = [linear(a, b, math.sqrt(2)) for a, b in zip(sizes, hidden, strict=False)]
        self.layers = nn.ModuleList(layers)
        # For the hot path: on a CPU, calling a module and looking up its weights costs as much as a small matrix product.
        self.weights = [(layer.weight, layer.bias) for layer in layers]

    def forward(self, x: Tensor) -> Tensor:
        activation = ACTIVATIONS[self.activation]
        for weight, bias in self.weights:
            x = activation(F.linear(x, weight, bias))
        return x
