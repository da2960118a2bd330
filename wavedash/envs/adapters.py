"""Adapters: they make a `HostEnv` of what a user's factory returned. Which class adapts what is registered here.

This file runs in worker processes, so it must not import torch.
"""
from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium

from wavedash.envs.errors import EnvError
from wavedash.envs.host import HostEnv, summary


class Adapter(NamedTuple):
    """A class that makes a HostEnv of an environment of some library."""

    takes: Callable[[Any], bool]
    path: str
    """The class, `module:Class`."""


def is_rlgym(env: Any) -> bool:
    """RLGym is recognised by its methods, so that it need not be installed."""
    return all(hasattr(type(env), name) for name in ("agents", "observation_spaces", "action_spaces", "set_state", "step"))


def is_gym(env: Any) -> bool:
    """Whether it has the interface of old Gym, for one agent or several."""
    return hasattr(env, "action_space") and all(callable(getattr(env, name, None)) for name in ("reset", "step"))


ADAPTERS = [
    Adapter(lambda env: isinstance(env, gymnasium.Env), "wavedash.envs.gymnasium.host_env:GymnasiumEnv"),
    Adapter(is_rlgym, "wavedash.envs.rlgym.env:RLGymEnv"),
    Adapter(is_gym, "wavedash.envs.rlgym.gym_env:GymEnv"),
]
"""The first adapter that takes an environment is used."""


def as_host_env(env: Any) -> HostEnv:
    """Adapt what a user's factory returned to HostEnv. An environment may bring its own method of this name."""
    if not isinstance(env, gymnasium.Env):
        if isinstance(env, HostEnv):
            return env
        if hasattr(env, "as_host_env"):
            return env.as_host_env()
        _refuse_whole(env)
    for adapter in ADAPTERS:
        if adapter.takes(env):
            module, _, name = adapter.path.partition(":")
            return getattr(importlib.import_module(module), name)(env)
    raise EnvError(f"the environment factory returned {summary(env)}: it must return a gymnasium.Env or an rlgym.api.RLGym")


def _refuse_whole(env: Any) -> None:
    """Refuse a VecEnv, which is many environments. Its module is looked up, not imported, because it imports torch."""
    module = sys.modules.get("wavedash.envs.vec_env")
    if module is not None and isinstance(env, module.VecEnv):
        raise EnvError(f"the environment factory returned a whole VecEnv ({type(env).__name__}) without being told for how "
                       "many rows and where: give it the parameters `count` and `device`; it is then called once")
