"""HostEnv: one world that lives in this process and speaks numpy; and its implementation for a `gymnasium.Env`.

This file runs in worker processes, so it must not import torch: a worker then starts fast and stays small.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, SupportsFloat, runtime_checkable

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from wavedash.envs.errors import EnvError

Array = NDArray[Any]
HostObs = Array | Mapping[str, Array]
HostStep = tuple[HostObs, SupportsFloat | Array, bool | Array, bool | Array, Mapping[str, Any]]


@runtime_checkable
class HostEnv(Protocol):
    """A world of `num_rows` agents that begin their episodes together. A row may end before the others; it then sits out, and
    the next episode begins when no row is left.

    With one row, observations, rewards and actions are those of the agent; with more they have a leading axis [num_rows].
    """

    num_rows: int
    observation_space: gymnasium.Space[Any]
    """Of one row: Box or Dict of Box."""
    action_space: gymnasium.Space[Any]
    """Of one row."""
    active: bool | Array
    """Rows that take part in the current episode; read after each reset, so team sizes may change there."""

    def reset(self, seed: int) -> HostObs:
        """Start an episode that depends on nothing but the seed."""

    def step(self, action: Any) -> HostStep:
        """obs, reward, terminated, truncated, info. With several rows the flags are for all, or [num_rows] for each; a row that
        sits out has none."""

    def close(self) -> None: ...


class GymnasiumWorld:
    """A `gymnasium.Env` as a world of one row."""

    num_rows = 1
    active: bool | Array = True

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        parts = env.observation_space.values() if isinstance(env.observation_space, spaces.Dict) else [env.observation_space]
        if any(isinstance(part, spaces.Discrete) for part in parts):
            env = OneHotObservation(env)
        self._env = env
        self.step: Callable[[Any], HostStep] = env.step  # the hot path: no call in between
        self.observation_space = env.observation_space
        self.action_space = env.action_space

    def reset(self, seed: int) -> HostObs:
        result = self._env.reset(seed=seed)
        if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], Mapping)):
            raise EnvError(f"reset() must return (observation, info) but returned {_summary(result)}; an environment written "
                           "for Gym before 0.26 returns the observation alone: return (observation, {}) instead")
        return result[0]

    def close(self) -> None:
        self._env.close()


class OneHotObservation(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Discrete observations (alone or inside a Dict) as one-hot vectors, which a network can read."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        inner = env.observation_space
        self._discrete: dict[str, spaces.Discrete]
        if isinstance(inner, spaces.Dict):
            self._discrete = {key: space for key, space in inner.items() if isinstance(space, spaces.Discrete)}
            self.observation_space = spaces.Dict({**inner.spaces, **{k: one_hot_box(s) for k, s in self._discrete.items()}})
        else:
            assert isinstance(inner, spaces.Discrete)
            self._discrete = {"": inner}
            self.observation_space = one_hot_box(inner)

    def observation(self, observation: Any) -> Any:
        if isinstance(self.observation_space, spaces.Dict):
            return {**observation, **{key: one_hot(observation[key], space) for key, space in self._discrete.items()}}
        return one_hot(observation, self._discrete[""])


def one_hot_box(space: spaces.Discrete) -> spaces.Box:
    return spaces.Box(0.0, 1.0, (int(space.n),), np.float32)


def one_hot(value: int, space: spaces.Discrete) -> Array:
    if not space.contains(value):
        raise EnvError(f"observation {_summary(value)} is outside {space}: correct the observation space or the observation")
    vector = np.zeros(int(space.n), np.float32)
    vector[int(value) - int(space.start)] = 1.0
    return vector


def _summary(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) < 80 else text[:77] + '...'}"


def as_world(env: Any) -> HostEnv:
    """What a user's factory returned, as a world. One that knows how to become a world has a method of this name."""
    if isinstance(env, gymnasium.Env):
        return GymnasiumWorld(env)
    if isinstance(env, HostEnv):
        return env
    if hasattr(env, "as_world"):
        return env.as_world()
    if is_rlgym(env):
        from wavedash.envs.rlgym import RLGymWorld

        return RLGymWorld(env)
    if hasattr(env, "action_space") and all(callable(getattr(env, name, None)) for name in ("reset", "step")):
        from wavedash.envs.gym_world import GymWorld

        return GymWorld(env)
    raise EnvError(f"the environment factory returned {_summary(env)}: it must return a gymnasium.Env or an rlgym.api.RLGym")


def is_rlgym(env: Any) -> bool:
    """Known by its methods: rlgym need not be installed to ask."""
    return all(hasattr(type(env), name) for name in ("agents", "observation_spaces", "action_spaces", "set_state", "step"))
