"""Multi-layer perceptrons with the initialisation that PPO needs: orthogonal weights, zero biases."""
from __future__ import annotations

import math
from collections.abc import Sequence

from torch import nn

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "elu": nn.ELU, "silu": nn.SiLU}


def linear(inputs: int, outputs: int, gain: float) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def mlp(inputs: int, hidden: Sequence[int], activation: str) -> nn.Sequential:
    """Hidden layers only, each followed by the activation; heads are added by their owners."""
    layers: list[nn.Module] = []
    for outputs in hidden:
        layers += [linear(inputs, outputs, math.sqrt(2)), ACTIVATIONS[activation]()]
        inputs = outputs
    return nn.Sequential(*layers)
