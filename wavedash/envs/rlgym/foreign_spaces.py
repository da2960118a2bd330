"""Spaces as other libraries write them: RLGym's pairs such as `("discrete", 90)`, plain sizes, the spaces of old Gym."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from wavedash.envs.errors import EnvError


def observation_space_of(space: Any, example: Any) -> gymnasium.Space[Any]:
    """A space as Gymnasium's. `example` is an observation, whose shape counts where the space has none (`("real", -1)`)."""
    kind, size = _kind_and_size(space, of_a_number="real")
    if kind == "real":
        shape = _shape(size) if np.all(np.asarray(size) > 0) else np.shape(example)
        return spaces.Box(-np.inf, np.inf, shape, np.float32)
    return _PAIRS[kind](size) if kind in _PAIRS else _known(space, "observation")


def action_space_of(space: Any) -> gymnasium.Space[Any]:
    """A space as Gymnasium's. A `real` action lies between -1 and 1 in each dimension."""
    kind, size = _kind_and_size(space, of_a_number="discrete")
    return _PAIRS[kind](size) if kind in _PAIRS else _known(space, "action")


def is_index(space: Any) -> bool:
    """Whether an action is one of n by RLGym's convention, which hands it over as an array of shape (1,)."""
    return _kind_and_size(space, of_a_number="discrete")[0] == "discrete"


def _shape(size: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in np.atleast_1d(size))


_PAIRS: dict[str, Callable[[Any], gymnasium.Space[Any]]] = {
    "discrete": lambda size: spaces.Discrete(int(size)),
    "real": lambda size: spaces.Box(-1.0, 1.0, _shape(size), np.float32),
    "multidiscrete": lambda sizes: spaces.MultiDiscrete(np.asarray(sizes, np.int64)),
}
_SYNONYMS = {"continuous": "real", "box": "real"}


def _kind_and_size(space: Any, of_a_number: str) -> tuple[str, Any]:
    """Kind and size of a space that is written as a pair, in either order, or as a number; ("", None) for any other."""
    if isinstance(space, int | np.integer) and not isinstance(space, bool):
        return of_a_number, space
    if isinstance(space, tuple | list) and len(space) == 2 and sum(isinstance(part, str) for part in space) == 1:
        kind, size = space if isinstance(space[0], str) else space[::-1]
        name = "".join(letter for letter in kind.lower() if letter.isalpha())
        return _SYNONYMS.get(name, name), size
    return "", None


def _known(space: Any, what: str) -> gymnasium.Space[Any]:
    """A space of Gymnasium, or of old Gym, which is recognised by its attributes."""
    if isinstance(space, gymnasium.Space):
        return space
    if hasattr(space, "nvec"):
        return spaces.MultiDiscrete(np.asarray(space.nvec))
    if hasattr(space, "low") and hasattr(space, "high"):
        return spaces.Box(np.asarray(space.low), np.asarray(space.high), dtype=space.dtype.type)
    if type(space).__name__ == "Discrete":
        return spaces.Discrete(int(space.n), start=int(getattr(space, "start", 0)))
    raise EnvError(f"the {what} space {space!r} is not understood: use ('real', n), ('discrete', n), ('multi-discrete', sizes) "
                   "or a space of gymnasium")
