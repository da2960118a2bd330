"""Functions for observations, which are a tensor or a flat dict of tensors."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from wavedash.envs.vec_env import Obs as Obs

ACTION_MASK = "action_mask"
"""The key of a dict observation that is not sensed but says which discrete actions are allowed (true: allowed)."""


def map_obs(function: Callable[..., Tensor], obs: Obs, *others: Any) -> Obs:
    """Apply `function` to the tensor, or to the tensors of each key."""
    if isinstance(obs, dict):
        return {key: function(value, *(other[key] for other in others)) for key, value in obs.items()}
    return function(obs, *others)


def named_tensors(obs: Obs, name: str = "obs") -> dict[str, Tensor]:
    """A flat dict for storage: `obs`, or `obs.<key>`."""
    if isinstance(obs, dict):
        return {f"{name}.{key}": value for key, value in obs.items()}
    return {name: obs}


def sensed_spaces(space: gymnasium.Space[Any]) -> dict[str, gymnasium.spaces.Box]:
    """The parts of an observation that networks look at: every key but the action mask; a plain Box is called `obs`."""
    parts = dict(space.spaces) if isinstance(space, gymnasium.spaces.Dict) else {"obs": space}
    parts.pop(ACTION_MASK, None)
    return parts  # type: ignore[return-value]


def sensed(obs: Obs) -> dict[str, Tensor]:
    """The tensors that belong to `sensed_spaces`."""
    if isinstance(obs, dict):
        return {key: value for key, value in obs.items() if key != ACTION_MASK}
    return {"obs": obs}


def is_picture(shape: tuple[int, ...]) -> bool:
    """Whether numbers of this shape are taken for a picture or depth map: [H, W], [H, W, C] or [C, H, W]."""
    return len(shape) == 3 or (len(shape) == 2 and min(shape) >= 8)


def channels_last(shape: tuple[int, ...]) -> bool:
    """Whether the channels of a picture with three axes are its last axis: the one with few entries, or where both ends have
    few, the last, as in Gymnasium."""
    return shape[2] <= 4 or shape[0] > 4


def module_name(key: str) -> str:
    """The name of the part of a network that looks at `key`: torch allows no dots in it."""
    return key.replace(".", "_")


def action_mask(obs: Obs) -> Tensor | None:
    return obs.get(ACTION_MASK) if isinstance(obs, dict) else None


def empty_obs(space: gymnasium.Space[Any], *leading: int, device: torch.device | str = "cpu") -> Obs:
    """Uninitialised storage for observations of `space` with the leading dimensions `leading`."""
    if isinstance(space, gymnasium.spaces.Dict):
        return {key: empty_obs(part, *leading, device=device) for key, part in space.spaces.items()}  # type: ignore[misc]
    dtype = torch.from_numpy(np.empty(0, space.dtype)).dtype
    dtype = torch.float32 if dtype == torch.float64 else dtype
    return torch.empty(*leading, *(space.shape or ()), dtype=dtype, device=device)
