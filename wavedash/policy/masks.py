"""The action mask is the key `action_mask` of an observation: it says of each discrete action whether it is allowed now."""
from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium import spaces
from torch import Tensor

from wavedash.envs.obs import ACTION_MASK
from wavedash.envs.row_spec import choice_sizes
from wavedash.errors import UserError


def check_mask_space(observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> None:
    """Raises UserError where the mask that observations promise does not fit the actions."""
    if not isinstance(observation_space, spaces.Dict) or ACTION_MASK not in observation_space.spaces:
        return
    shape, sizes = observation_space[ACTION_MASK].shape, choice_sizes(action_space)
    if not sizes:
        raise UserError(f"the observation has a key {ACTION_MASK!r}, but actions are continuous ({action_space}): a mask "
                        "forbids discrete choices only. Leave the key out, or give it another name if the policy shall see it")
    if shape != (sum(sizes),):
        parts = "" if len(sizes) == 1 else f" ({' + '.join(map(str, sizes))}, one part for each choice)"
        raise UserError(f"{ACTION_MASK!r} has the shape {shape}, but the action space {action_space} has {sum(sizes)} "
                        f"actions{parts}: it must be MultiBinary({sum(sizes)}), true for every action that is allowed")


def allows_something(mask: Tensor, action_space: gymnasium.Space[Any]) -> Tensor:
    """Returns, for masks [..., actions], whether every choice has an allowed action: bool [...]."""
    allowed = None
    for part in mask.split(choice_sizes(action_space), -1):  # type: ignore[no-untyped-call]
        possible = part.any(-1)
        allowed = possible if allowed is None else allowed & possible
    assert allowed is not None
    return allowed
