"""HostEnv: one world that lives in this process and speaks numpy; and its implementation for a `gymnasium.Env`.

This file runs in worker processes, so it must not import torch: a worker then starts fast and stays small.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol, SupportsFloat, runtime_checkable

import gymnasium
from numpy.typing import NDArray

from wavedash.envs.encoding import encoded, encoded_space, encoders_of
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
        self.source_space = env.observation_space
        if encoders_of(env.observation_space):
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
    """Choices (alone or inside a Dict) as one-hot vectors, which a network can read."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._encoders = encoders_of(env.observation_space)
        self.observation_space = encoded_space(env.observation_space)

    def observation(self, observation: Any) -> Any:
        return encoded(self._encoders, observation)


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
    _refuse_whole(env)
    if is_rlgym(env):
        from wavedash.envs.rlgym import RLGymWorld

        return RLGymWorld(env)
    if hasattr(env, "action_space") and all(callable(getattr(env, name, None)) for name in ("reset", "step")):
        from wavedash.envs.gym_world import GymWorld

        return GymWorld(env)
    raise EnvError(f"the environment factory returned {_summary(env)}: it must return a gymnasium.Env or an rlgym.api.RLGym")


def _refuse_whole(env: Any) -> None:
    """A VecEnv is many environments. Nobody can have one without its module; this one must not import torch."""
    module = sys.modules.get("wavedash.envs.vec_env")
    if module is not None and isinstance(env, module.VecEnv):
        raise EnvError(f"the environment factory returned a whole VecEnv ({type(env).__name__}) without being told for how "
                       "many rows and where: give it the parameters `count` and `device`; it is then called once")


def is_rlgym(env: Any) -> bool:
    """Known by its methods: rlgym need not be installed to ask."""
    return all(hasattr(type(env), name) for name in ("agents", "observation_spaces", "action_spaces", "set_state", "step"))
