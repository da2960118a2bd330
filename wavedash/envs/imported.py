"""The kind of environments that `env.factory` asks for: one's own, by the import path of what makes them.

    def make(**kwargs)                  returns one environment (Gymnasium, RLGym, rlgym-ppo); called for each of `env.count`
    def make(count, device, **kwargs)   returns a whole `VecEnv` for the run's device; called once

Where a whole VecEnv is made, `env.workers` and `env.groups` are passed if the function has parameters of these names.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from wavedash.envs.kinds import Kind

if TYPE_CHECKING:
    import torch

    from wavedash.config import EnvConfig
    from wavedash.envs.vec_env import VecEnv

WHOLE = ("count", "device")
"""Parameters that tell a function which makes a whole VecEnv"""
SHIPPED = frozenset(f"wavedash.envs.puzzles:{name}" for name in ("RepeatPrevious", "TMaze", "masked_cartpole"))
"""Environments of this package, which presets name by their import path"""


class ImportedKind(Kind):
    """Whatever a function of the user returns."""

    about = "an import path 'module:callable'"
    code_options = MappingProxyType({"factory": SHIPPED})

    def describe(self, config: EnvConfig) -> str:
        return config.factory or ""

    def make(self, config: EnvConfig, device: torch.device) -> VecEnv:
        from wavedash.envs.factory import EnvFactory, import_callable
        from wavedash.envs.make import one_by_one

        function = import_callable(config.factory or "")
        if makes_whole(function, config):
            return _whole(function, config, device)
        make = EnvFactory(config.factory or "", config.kwargs, imported=True, wrappers=tuple(config.wrappers))
        return one_by_one(make, config, device)

    def takes_workers(self, config: EnvConfig) -> bool:
        from wavedash.envs.factory import import_callable

        function = import_callable(config.factory or "")
        return not makes_whole(function, config) or "workers" in _parameters(function)


def makes_whole(function: Callable[..., Any], config: EnvConfig) -> bool:
    """Whether it wants to be told how many rows there are to be and where. One whose `count` and `device` are set in
    `env.kwargs` means something else by them."""
    return all(name in _parameters(function) and name not in config.kwargs for name in WHOLE)


def _whole(function: Callable[..., Any], config: EnvConfig, device: torch.device) -> VecEnv:
    from wavedash.envs.errors import EnvError
    from wavedash.envs.factory import called
    from wavedash.envs.make import stacked
    from wavedash.envs.vec_env import VecEnv

    name, known = config.factory or "", _parameters(function)
    if config.workers and "workers" not in known:
        raise EnvError(f"env.workers={config.workers} is for environments that are stepped one by one, but {name} makes a "
                       "whole VecEnv: set env.workers=0, or give the function a parameter `workers`")
    if config.wrappers:
        raise EnvError(f"env.wrappers is for environments of Gymnasium, but {name} makes a whole VecEnv: leave it empty")
    given = {"count": config.count, "device": device, "workers": config.workers, "groups": config.groups}
    env = called(name, function, {key: x for key, x in given.items() if key in known} | config.kwargs)
    if not isinstance(env, VecEnv):
        raise EnvError(f"{name} takes `count` and `device`, so it is to return a whole wavedash.envs.vec_env.VecEnv, but it "
                       f"returned a {type(env).__name__}. A function that returns one environment takes neither; if it means "
                       "something else by them, set both in env.kwargs")
    return stacked(env, config)


def _parameters(function: Callable[..., Any]) -> set[str]:
    """Names of parameters; none where they cannot be told, as of some functions that are written in C."""
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()
