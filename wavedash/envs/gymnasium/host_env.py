"""GymnasiumEnv: a `gymnasium.Env` as a `HostEnv`. This file runs in worker processes, so it must not import torch."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium

from wavedash.envs.encoding import encoded, encoded_space, encoders_of
from wavedash.envs.errors import EnvError
from wavedash.envs.host import Array, HostObs, HostStep, summary


class GymnasiumEnv:
    """A `gymnasium.Env` as an environment of one row."""

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
            raise EnvError(f"reset() must return (observation, info) but returned {summary(result)}; an environment written "
                           "for Gym before 0.26 returns the observation alone: return (observation, {}) instead")
        return result[0]

    def close(self) -> None:
        self._env.close()


class OneHotObservation(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Turns choices, alone or inside a Dict, into one-hot vectors, which a network can read."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._encoders = encoders_of(env.observation_space)
        self.observation_space = encoded_space(env.observation_space)

    def observation(self, observation: Any) -> Any:
        return encoded(self._encoders, observation)
