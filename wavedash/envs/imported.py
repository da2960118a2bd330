"""The kind of environments that `env.factory` asks for: one's own, by the import path of what makes them.

    def make(**kwargs)                  returns one environment (Gymnasium, RLGym, rlgym-ppo); called for each of `env.count`
    def make(count, device, **kwargs)   returns a whole `VecEnv` for the run's device; called once
    class MyKind(Kind)                  a kind of one's own, asked for everything that follows; its options are `env.kwargs`

Where a function makes a whole VecEnv, `env.workers` and `env.groups` are passed if it has parameters of these names. Nothing is
imported while a configuration is read: that of a run may be somebody else's, whose code is not trusted yet.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from wavedash.envs.kinds import Evaluation, Kind, Spaces

if TYPE_CHECKING:
    import torch

    from wavedash.config import EnvConfig
    from wavedash.envs.vec_env import VecEnv
    from wavedash.findings import Findings
    from wavedash.trained_policy import TrainedPolicy

WHOLE = ("count", "device")
"""Parameters by which a function that makes a whole VecEnv is recognised."""
SHIPPED = frozenset(f"wavedash.envs.puzzles:{name}" for name in ("RepeatPrevious", "TMaze", "masked_cartpole",
                                                                        "cartpole_with_positions"))
"""Environments of this package, which presets name by their import path."""


class ImportedKind(Kind):
    """What a user's function makes, or what a user's own kind says."""

    about = "an import path 'module:callable'"
    code_options = MappingProxyType({"factory": SHIPPED})

    def check(self, config: EnvConfig) -> None:
        """Nothing can be checked before the user's code is imported."""

    def describe(self, config: EnvConfig) -> str:
        """The import path, also where it cannot be imported, unless it leads to a kind that has a name of its own."""
        from wavedash.envs.errors import EnvError

        try:
            kind = _own_kind(config)
        except EnvError:
            kind = None
        return kind.describe(config) if kind else config.factory or ""

    def make(self, config: EnvConfig, device: torch.device) -> VecEnv:
        from wavedash.envs.factory import EnvFactory, import_callable
        from wavedash.envs.make import one_by_one

        if kind := _own_kind(config):
            return _made_by(kind, config, device)
        function = import_callable(config.factory or "")
        if makes_whole(function, config):
            return _whole(function, config, device)
        make = EnvFactory(config.factory or "", config.kwargs, imported=True, wrappers=tuple(config.wrappers))
        return one_by_one(make, config, device)

    def spaces(self, config: EnvConfig, device: torch.device) -> Spaces:
        kind = _own_kind(config)
        return kind.spaces(config, device) if kind else super().spaces(config, device)

    def makes_one_for_spaces(self, config: EnvConfig) -> bool:
        kind = _own_kind(config)
        return kind is None or kind.makes_one_for_spaces(config)

    def memory(self, config: EnvConfig, device: torch.device) -> Mapping[str, int]:
        kind = _own_kind(config)
        return kind.memory(config, device) if kind else super().memory(config, device)

    def counts(self, config: EnvConfig, device: torch.device) -> tuple[int, int]:
        kind = _own_kind(config)
        return kind.counts(config, device) if kind else super().counts(config, device)

    def united(self, config: EnvConfig, others: Sequence[EnvConfig]) -> EnvConfig:
        kind = _own_kind(config)
        return kind.united(config, others) if kind else super().united(config, others)

    def measured(self, config: EnvConfig) -> list[str] | None:
        kind = _own_kind(config)
        return kind.measured(config) if kind else super().measured(config)

    def few(self, config: EnvConfig, count: int) -> EnvConfig:
        kind = _own_kind(config)
        return kind.few(config, count) if kind else super().few(config, count)

    def live_keys(self, config: EnvConfig) -> list[tuple[str, ...]]:
        kind = _own_kind(config)
        return kind.live_keys(config) if kind else super().live_keys(config)

    def change(self, env: VecEnv, config: EnvConfig) -> None:
        if kind := _own_kind(config):  # which has checked the options
            kind.change(env, config)

    def takes_workers(self, config: EnvConfig) -> bool:
        from wavedash.envs.factory import import_callable

        if kind := _own_kind(config):
            return kind.takes_workers(config)
        function = import_callable(config.factory or "")
        return not makes_whole(function, config) or "workers" in _parameters(function)

    def evaluation(self, config: EnvConfig) -> Evaluation:
        kind = _own_kind(config)
        return kind.evaluation(config) if kind else super().evaluation(config)

    def debug_report(self, switch: str, config: EnvConfig, device: torch.device, policy: TrainedPolicy) -> Findings | None:
        kind = _own_kind(config)
        return kind.debug_report(switch, config, device, policy) if kind else None


def makes_whole(function: Callable[..., Any], config: EnvConfig) -> bool:
    """Whether a function wants to be told how many rows there are to be and where. One whose `count` and `device` are set in
    `env.kwargs` means something else by them."""
    return all(name in _parameters(function) and name not in config.kwargs for name in WHOLE)


def _own_kind(config: EnvConfig) -> Kind | None:
    """The user's own kind, whose options are right and go together; None where `env.factory` names something else."""
    from wavedash.envs.errors import EnvError
    from wavedash.envs.factory import import_callable

    named = import_callable(config.factory or "")
    if not (inspect.isclass(named) and issubclass(named, Kind)):
        return None
    if missing := sorted(named.__abstractmethods__):
        raise EnvError(f"{config.factory} lacks what every kind of environment must have: write {' and '.join(missing)}")
    kind: Kind = named()
    kind.options(config)
    try:
        kind.check(config)
    except ValueError as error:
        raise EnvError(f"{config.factory}: {error}") from error
    return kind


def _made_by(kind: Kind, config: EnvConfig, device: torch.device) -> VecEnv:
    from wavedash.envs.errors import EnvError
    from wavedash.envs.factory import called
    from wavedash.envs.vec_env import VecEnv

    env = called(config.factory or "", lambda: kind.make(config, device), {})
    if not isinstance(env, VecEnv):
        raise EnvError(f"`make` of {config.factory} is to return a wavedash.envs.vec_env.VecEnv, but it returned a "
                       f"{type(env).__name__}")
    return env


def _whole(function: Callable[..., Any], config: EnvConfig, device: torch.device) -> VecEnv:
    from wavedash.envs.errors import EnvError
    from wavedash.envs.factory import called
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
    return env


def _parameters(function: Callable[..., Any]) -> set[str]:
    """Names of parameters; empty where they are unknown, as for some functions that are written in C."""
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()
