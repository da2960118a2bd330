"""Kinds of environments: the registry that everybody asks who must not care which kind of environment a run trains in.

A kind is recognised by the option of `EnvConfig` that asks for it (`env.id`, `env.factory`, `env.rocket`). It says how such an
environment is called, checked, made and stepped. To add a kind: an option in `EnvConfig`, a subclass of `Kind`, and a line of
`register` below. The class is imported when it is first asked for, and its file must import without torch, because
configurations are checked before torch is loaded.
"""
from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import gymnasium
    import torch

    from wavedash.config import EnvConfig
    from wavedash.envs.vec_env import VecEnv


class Spaces(NamedTuple):
    """All of an environment that a policy is built from."""

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]


class Kind(ABC):
    """What configuration, factory, preflight, evaluation, export and advice ask about an environment of one kind."""

    about: str
    """What its option holds, for messages: "a Gymnasium id"."""
    code_options: Mapping[str, frozenset[str]] = MappingProxyType({})
    """Options of `EnvConfig` whose text names code to import, and the values of each that ship with this package. With any
    other value, the run folder of somebody else needs `--trust`."""

    @abstractmethod
    def describe(self, config: EnvConfig) -> str:
        """The environment's name, for people."""

    def check(self, config: EnvConfig) -> None:  # noqa: B027 (optional)
        """Raises ValueError where options do not go together. Quick, without torch."""

    @abstractmethod
    def make(self, config: EnvConfig, device: torch.device) -> VecEnv:
        """`config.count` environments whose rows live on `device`, the run's."""

    def spaces(self, config: EnvConfig, device: torch.device) -> Spaces:
        """What preflight looks at: one environment is made, reset and stepped once."""
        import torch

        env = self.make(config.model_copy(update={"count": 1, "workers": 0}), device)
        try:
            env.reset(0)
            env.action_space.seed(0)
            first = getattr(env.action_space, "start", 0)
            action = (env.action_space.sample() - first)[None].repeat(env.num_rows, 0)
            env.step(torch.from_numpy(action).to(env.device))
            return Spaces(env.observation_space, env.action_space)
        finally:
            env.close()

    def takes_workers(self, config: EnvConfig) -> bool:
        """Whether more `env.workers` would use more cores: advice suggests them only then."""
        return True


_registered: dict[str, str] = {}


def register(option: str, path: str) -> None:
    """The kind that `env.<option>` asks for; `path` is that of its class, `module:Class`."""
    _registered[option] = path
    _kind.cache_clear()


def kind_of(config: EnvConfig) -> Kind:
    """ValueError unless exactly one kind is asked for."""
    asked = [option for option in _registered if getattr(config, option, None) is not None]
    if len(asked) != 1:
        *others, last = (f"env.{option} ({_kind(option).about})" for option in _registered)
        raise ValueError(f"set exactly one of {', '.join(others)} and {last}")
    return _kind(asked[0])


def code_options() -> dict[str, frozenset[str]]:
    """Returns `Kind.code_options` of all kinds together."""
    return {option: shipped for name in _registered for option, shipped in _kind(name).code_options.items()}


@cache
def _kind(option: str) -> Kind:
    module, _, name = _registered[option].partition(":")
    kind: Kind = getattr(importlib.import_module(module), name)()
    return kind


register("id", "wavedash.envs.gymnasium.kind:GymnasiumKind")
register("factory", "wavedash.envs.imported:ImportedKind")
register("rocket", "wavedash.rocket.kind:RocketKind")
