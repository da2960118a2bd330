"""Multi-layer perceptrons are initialised as is usual for PPO (orthogonal weights, zero biases), or as torch does."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh, "relu": torch.relu, "elu": F.elu, "silu": F.silu, "gelu": F.gelu,
}

NORM_EPS = 1e-5
"""What LayerNorm adds to the variance; torch's own default."""


def linear(inputs: int, outputs: int, gain: float) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def initialize_as_torch_does(network: nn.Module) -> None:
    """Draws the weights and biases of every layer anew, as torch does by default."""
    for module in network.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()  # type: ignore[operator]


class MLP(nn.Module):
    """Hidden layers, each followed by the activation, with `layer_norm` by LayerNorm (Ba et al. 2016) and then the activation.
    There is no output layer: heads have their own."""

    def __init__(self, inputs: int, hidden: Sequence[int], activation: str, layer_norm: bool = False):
        super().__init__()
        sizes = [inputs, *hidden]
        self.outputs = sizes[-1]
        self.activation = activation
        layers = [linear(a, b, math.sqrt(2)) for a, b in zip(sizes, hidden, strict=False)]
        self.layers = nn.ModuleList(layers)
        # The hot path uses this list: on a CPU, to call a module and look up its weights costs as much as a small matrix
        # product.
        self.weights = [(layer.weight, layer.bias) for layer in layers]
        norms = [nn.LayerNorm(size) for size in hidden] if layer_norm else []
        self.norms = nn.ModuleList(norms)
        self.norm_weights = [(norm.weight, norm.bias) for norm in norms]
        """Gain and shift of every LayerNorm; empty without them"""

    def forward(self, x: Tensor) -> Tensor:
        activation = ACTIVATIONS[self.activation]
        if not self.norm_weights:
            for weight, bias in self.weights:
                x = activation(F.linear(x, weight, bias))
            return x
        for (weight, bias), (gain, shift) in zip(self.weights, self.norm_weights, strict=True):
            x = activation(F.layer_norm(F.linear(x, weight, bias), gain.shape, gain, shift, NORM_EPS))
        return x
