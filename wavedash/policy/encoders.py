"""Encoders turn an observation into one vector of features; each key of the observation has its own.

Vectors pass unchanged unless an MLP is configured; images and depth maps go through a small convnet whose depth follows from
the size of the picture. Actor and critic may use different keys.
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

from wavedash.config import EncoderConfig
from wavedash.envs.obs import channels_last, is_picture, module_name
from wavedash.errors import UserError
from wavedash.policy.mlp import MLP, linear

SMALLEST_MAP = 4
"""Pictures are halved until their shorter side is this small, then flattened."""


class FlatEncoder(nn.Module):
    """Flattens numbers and leaves them as they are; integers become floats."""

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        self.dims, self.outputs = len(shape), int(np.prod(shape))

    def forward(self, x: Tensor) -> Tensor:
        if self.dims != 1:
            x = x.unsqueeze(-1) if self.dims == 0 else x.flatten(-self.dims)
        return x if x.is_floating_point() else x.float()


class MlpEncoder(nn.Module):
    """Passes numbers through hidden layers of their own."""

    def __init__(self, shape: tuple[int, ...], config: EncoderConfig, activation: str):
        super().__init__()
        self.flat = FlatEncoder(shape)
        self.layers = MLP(self.flat.outputs, config.hidden, activation)
        self.outputs = self.layers.outputs

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(self.flat(x))


class ConvEncoder(nn.Module):
    """Encodes pictures [H, W], [H, W, C] or [C, H, W]; integers are scaled to 0..1, from 0..255 unless the space says 0..1."""

    may_sync = True
    """Whether the host may look at pictures that are on a CPU. Tests of what a GPU does set it to false"""

    def __init__(self, space: gymnasium.spaces.Box, config: EncoderConfig):
        super().__init__()
        shape = space.shape
        self.brightest = 1.0 if (space.high <= 1).all() else 255.0
        self.dims = len(shape)
        self.channels_last = self.dims == 3 and channels_last(shape)
        channels, height, width = (1, *shape) if self.dims == 2 else (shape[2], *shape[:2]) if self.channels_last else shape
        halvings = max(1, round(math.log2(max(min(height, width), 2) / SMALLEST_MAP)))
        sizes = config.channels or [min(16 * 2**i, 64) for i in range(halvings)]
        layers: list[nn.Module] = []
        for size in sizes:
            conv = nn.Conv2d(channels, size, kernel_size=3, stride=2, padding=1)
            nn.init.orthogonal_(conv.weight, math.sqrt(2))
            nn.init.zeros_(conv.bias)  # type: ignore[arg-type]
            layers += [conv, nn.ReLU()]
            channels, height, width = size, (height + 1) // 2, (width + 1) // 2
        self.convolutions = nn.Sequential(*layers)
        self.project = linear(channels * height * width, config.features, math.sqrt(2))
        self.outputs = config.features

    def forward(self, x: Tensor) -> Tensor:
        leading = x.shape[: -self.dims]
        # How many pictures differ depends on the data: a GPU would have to wait for it, and a compiler cannot know it.
        if len(leading) == 2 and self.may_sync and x.device.type == "cpu" and not torch.compiler.is_compiling():
            pictures, which = distinct(x)
            return self._encode(pictures)[which]
        return self._encode(x.reshape(-1, *x.shape[-self.dims :])).view(*leading, self.outputs)

    def _encode(self, x: Tensor) -> Tensor:
        """[B, outputs] of pictures [B, ...]."""
        if self.dims == 2:
            x = x.unsqueeze(1)
        elif self.channels_last:
            x = x.movedim(-1, 1)
        x = x if x.is_floating_point() else x.float() / self.brightest
        return torch.relu(self.project(self.convolutions(x).flatten(1)))


def distinct(x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the D pictures of sequences [L, B, ...] that differ from the one of the step before, [D, ...], and which of them
    each step has, [L, B]. A camera that is slower than the policy shows the same picture for several steps."""
    new = torch.ones(x.shape[:2], dtype=torch.bool)
    new[1:] = (x[1:] != x[:-1]).flatten(2).any(-1)
    number = new.flatten().cumsum(0).view_as(new) - 1  # of each that is new, in the order of `x[new]`
    return x[new], torch.where(new, number, 0).cummax(0).values


class Encoders(nn.Module):
    """Concatenates the features of some keys of an observation: [..., outputs]."""

    def __init__(
        self,
        spaces: Mapping[str, gymnasium.spaces.Box],
        keys: Sequence[str] | None,
        configs: Mapping[str, EncoderConfig],
        activation: str,
    ):
        super().__init__()
        unknown = sorted({*(keys or ()), *configs} - set(spaces))
        if unknown:
            raise UserError(f"policy names the observation key(s) {', '.join(unknown)}, but the environment has "
                            f"{', '.join(spaces)}")
        self.keys = [key for key in spaces if keys is None or key in keys]
        if not self.keys:
            raise UserError("a policy must see something: policy.actor_keys and policy.critic_keys need at least one key")
        self.parts = nn.ModuleDict({
            module_name(key): make_encoder(key, spaces[key], configs.get(key, EncoderConfig()), activation) for key in self.keys
        })
        # A single vector of floats, the most common case, passes without a copy.
        first = spaces[self.keys[0]]
        simple = len(self.keys) == 1 and type(next(iter(self.parts.values()))) is FlatEncoder
        self._vector = self.keys[0] if simple and len(first.shape) == 1 and np.issubdtype(first.dtype, np.floating) else None
        self.outputs: int = sum(part.outputs for part in self.parts.values())  # type: ignore[misc]

    def of(self, key: str) -> nn.Module:
        """The encoder of a key."""
        return self.parts[module_name(key)]

    def forward(self, sensed: Mapping[str, Tensor]) -> Tensor:
        if self._vector is not None:
            return sensed[self._vector]
        features = [self.of(key)(sensed[key]) for key in self.keys]
        return features[0] if len(features) == 1 else torch.cat(features, -1)


def make_encoder(key: str, space: gymnasium.spaces.Box, config: EncoderConfig, activation: str) -> nn.Module:
    kind = config.kind
    if kind == "auto":
        kind = "conv" if is_picture(space.shape) else "mlp" if config.hidden else "flat"
    if kind == "conv":
        if len(space.shape) not in (2, 3):
            raise UserError(f"policy.encoders.{key}.kind=conv needs a picture of 2 or 3 dimensions, but {key} has the shape "
                            f"{space.shape}; use kind=mlp")
        return ConvEncoder(space, config)
    return MlpEncoder(space.shape, config, activation) if kind == "mlp" else FlatEncoder(space.shape)
