"""A Network is one Sequential `model` of linear layers with ReLU between them, named as in rlgym-ppo's files.

Made from sizes, it has layers of its own. Made `around` the layers of our policy, it *is* that policy under rlgym-ppo's names:
what is loaded into it, or changed in it, takes effect in training.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

Layers = Sequence[nn.Linear]


class Network(nn.Module):
    """Turns rows of observations into outputs of the last layer, through `last` where there is one."""

    last: Callable[[], nn.Module] | None = None

    def __init__(self, input_shape: int, outputs: int, layer_sizes: Sequence[int], device: torch.device | str) -> None:
        super().__init__()
        if not layer_sizes:
            raise ValueError("a network needs at least one hidden layer")
        sizes = [int(input_shape), *layer_sizes, outputs]
        self._build([nn.Linear(a, b) for a, b in pairwise(sizes)])
        self.to(device)

    @classmethod
    def around(cls, layers: Layers, normalize: Callable[[Tensor], Tensor] | None) -> Self:
        """Makes a network of these layers themselves, not of copies. `normalize` is applied to raw observations first."""
        network = cls.__new__(cls)
        nn.Module.__init__(network)
        network._build(layers)
        network._normalize = normalize
        return network

    def _build(self, layers: Layers) -> None:
        parts: list[nn.Module] = []
        for layer in layers:
            parts += [layer, nn.ReLU()]
        parts[-1:] = [self.last()] if self.last is not None else []
        self.model = nn.Sequential(*parts)
        self._normalize: Callable[[Tensor], Tensor] | None = None

    @property
    def layers(self) -> list[nn.Linear]:
        return [part for part in self.model if isinstance(part, nn.Linear)]

    @property
    def device(self) -> torch.device:
        return self.layers[0].weight.device

    def forward(self, obs: Any) -> Tensor:
        return self.model(self._rows(obs))

    def get_output(self, obs: Any) -> Any:
        return self(obs)

    def _rows(self, obs: Any) -> Tensor:
        """Returns observations as [..., numbers], which the network takes."""
        array = obs if isinstance(obs, Tensor) else np.asarray(obs)
        rows = torch.as_tensor(array, dtype=torch.float32, device=self.device)
        numbers = self.layers[0].in_features
        if rows.shape[-1:] != (numbers,):  # an observation may have any shape
            rows = rows.reshape(-1, numbers)
        return rows if self._normalize is None else self._normalize(rows)


def own_copy(content: Any) -> Any:
    """Copies nested dictionaries of tensors to the CPU. For a view, torch would save the whole tensor behind it."""
    if isinstance(content, dict):
        return {name: own_copy(value) for name, value in content.items()}
    return content.detach().cpu().clone() if isinstance(content, Tensor) else content
