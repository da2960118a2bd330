"""Observations that are choices (Discrete, MultiDiscrete) as one-hot vectors, which a network can read.

This file runs in worker processes, so it must not import torch.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from wavedash.envs.errors import EnvError

Array = NDArray[Any]
Choices = spaces.Discrete | spaces.MultiDiscrete


class OneHot:
    """Encodes one choice, or several side by side: a MultiDiscrete([2, 3]) becomes 2 + 3 numbers with one 1 in each part."""

    def __init__(self, space: Choices) -> None:
        self.space = space
        sizes = np.atleast_1d(space.n if isinstance(space, spaces.Discrete) else space.nvec).reshape(-1)
        self._sizes, self._start = sizes, np.asarray(space.start, np.int64).reshape(-1)
        self._first = np.cumsum(sizes) - sizes  # where the part of each choice begins
        self.box = spaces.Box(0.0, 1.0, (int(sizes.sum()),), np.float32)

    def __call__(self, value: Any) -> Array:
        """Encode one observation or a batch of them, [..., *shape] to [..., numbers]."""
        array = np.asarray(value)
        dims = len(self.space.shape or ())
        leading, shape = array.shape[: array.ndim - dims], array.shape[array.ndim - dims :]
        if shape != (self.space.shape or ()) or not np.issubdtype(array.dtype, np.integer):
            raise EnvError(f"observation {_summary(value)} does not fit {self.space}: correct the observation space or the "
                           "observation")
        index = array.reshape(*leading, -1).astype(np.int64) - self._start
        if np.any(index < 0) or np.any(index >= self._sizes):
            raise EnvError(f"observation {_summary(value)} is outside {self.space}: correct the observation space or the "
                           "observation")
        vector = np.zeros((*leading, *self.box.shape), np.float32)
        np.put_along_axis(vector, index + self._first, 1.0, -1)
        return vector


def encoders_of(space: gymnasium.Space[Any]) -> dict[str, OneHot]:
    """The encoders by key of a Dict; a space that is itself a choice has the key "". Empty where nothing is a choice."""
    parts: Mapping[str, gymnasium.Space[Any]] = space.spaces if isinstance(space, spaces.Dict) else {"": space}
    return {key: OneHot(part) for key, part in parts.items() if isinstance(part, Choices)}


def encoded_space(space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
    """The space of `encoded` observations."""
    encoders = encoders_of(space)
    if isinstance(space, spaces.Dict):
        return spaces.Dict({**space.spaces, **{key: one_hot.box for key, one_hot in encoders.items()}})
    return encoders[""].box if encoders else space


def encoded(encoders: Mapping[str, OneHot], observation: Any) -> Any:
    """An observation, or a batch of them, with one-hot choices."""
    if "" in encoders:
        return encoders[""](observation)
    return {**observation, **{key: one_hot(observation[key]) for key, one_hot in encoders.items()}}


def _summary(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) < 80 else text[:77] + '...'}"
