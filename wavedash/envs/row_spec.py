"""RowSpec: what one row of an environment looks like, which is all that is needed to lay out arrays for a batch of them."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from wavedash.envs.adapters import as_host_env
from wavedash.envs.encoding import encoders_of
from wavedash.envs.errors import EnvError
from wavedash.envs.host import Array, HostEnv


@dataclass(frozen=True)
class RowSpec:
    """Spaces of one row (observations as they are stored: Box or Dict of Box), and how many rows an environment has."""

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    rows_per_env: int = 1
    source_space: gymnasium.Space[Any] | None = None
    """The space of observations before choices became one-hot; None where nothing is a choice."""

    @classmethod
    def of(cls, env: HostEnv) -> RowSpec:
        source = getattr(env, "source_space", None)
        return cls(stored_observation_space(env.observation_space), checked_action_space(env.action_space), env.num_rows,
                   source if source is not None and encoders_of(source) else None)

    @classmethod
    def probe(cls, make: Callable[[], Any]) -> RowSpec:
        """Builds one environment, looks at it and closes it."""
        env = as_host_env(make())
        try:
            return cls.of(env)
        finally:
            env.close()

    @property
    def observations(self) -> dict[str, spaces.Box]:
        """The parts of an observation; a plain Box has the single key ""."""
        return parts_of(self.observation_space)  # type: ignore[return-value]

    @property
    def is_plain(self) -> bool:
        return not isinstance(self.observation_space, spaces.Dict)

    @property
    def action_start(self) -> Array | int:
        """The environment's number of action index 0: Discrete and MultiDiscrete may not start at 0."""
        return getattr(self.action_space, "start", 0)


def parts_of(space: gymnasium.Space[Any]) -> dict[str, gymnasium.Space[Any]]:
    return dict(space.spaces) if isinstance(space, spaces.Dict) else {"": space}


def stored_observation_space(space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
    """The space of the observations that the learner sees. float64 becomes float32, in which networks compute."""
    parts: dict[str, gymnasium.Space[Any]] = {key: _stored_box(key, part) for key, part in parts_of(space).items()}
    return spaces.Dict(parts) if isinstance(space, spaces.Dict) else parts[""]


def _stored_box(key: str, space: gymnasium.Space[Any]) -> spaces.Box:
    if isinstance(space, spaces.MultiBinary):  # such as an action mask
        return spaces.Box(0, 1, space.shape, np.int8)
    if not isinstance(space, spaces.Box):
        raise EnvError(f"observation space {key!r} is {space}: only Box, Discrete, MultiDiscrete, MultiBinary and a flat Dict "
                       "of these can be learned from; wrap the environment in gymnasium.wrappers.FlattenObservation")
    if space.dtype != np.float64:
        return space
    with np.errstate(over="ignore"):  # bounds of 1.8e308 mean no bounds
        return spaces.Box(space.low.astype(np.float32), space.high.astype(np.float32), dtype=np.float32)


def choice_sizes(space: gymnasium.Space[Any]) -> list[int]:
    """How many actions each choice of a discrete action space has; empty where actions are continuous."""
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, spaces.MultiDiscrete):
        return [int(n) for n in space.nvec.reshape(-1)]
    if isinstance(space, spaces.MultiBinary):
        return [2] * int(np.prod(space.shape))
    return []


def checked_action_space(space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
    if isinstance(space, spaces.Box) and not np.issubdtype(space.dtype, np.floating):
        raise EnvError(f"action space {space} is a Box of integers: use MultiDiscrete")
    if not isinstance(space, (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Box)):
        raise EnvError(f"action space {space} is not supported: use Discrete, MultiDiscrete, MultiBinary or Box")
    return space
