"""EnvMaker carries the user's function that builds an environment into worker processes. It must not import torch."""
from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from multiprocessing.reduction import ForkingPickler
from typing import Any

import gymnasium

from wavedash.compat.rlgym_ppo import alias
from wavedash.compat.rlgym_ppo.metrics import LoggedEnv
from wavedash.compat.rlgym_ppo.rendering import Rendering
from wavedash.envs.adapters import as_host_env, is_rlgym
from wavedash.envs.host import HostEnv
from wavedash.envs.rlgym.gym_env import GymEnv


def to_host_env(env: Any) -> HostEnv:
    """Adapts an environment of RLGym v2, Gymnasium (whose reset returns a pair), or rlgym-ppo's own interface."""
    if hasattr(env, "as_host_env") or is_rlgym(env):
        return as_host_env(env)
    if isinstance(env, gymnasium.Env) and isinstance(env.reset(), tuple):
        return as_host_env(env)
    return env if isinstance(env, HostEnv) else GymEnv(env)


@dataclass(frozen=True)
class EnvMaker:
    """Makes environments from what `build` returns, with their metrics collected by `logger` if there is one."""

    build: Callable[[], Any]
    logger: Any = None
    keep: int = 0
    """The number of steps whose metrics are kept until they are read"""
    rendering: Rendering | None = None
    """How the first environment is shown; the others are not shown."""

    def for_env(self, index: int) -> EnvMaker:
        return self if index == 0 else replace(self, rendering=None)

    def __call__(self) -> HostEnv:
        built = self.build()
        env = to_host_env(built)
        if self.rendering is not None:
            env = self.rendering.of(env, built)
        return env if self.logger is None else LoggedEnv(env, self.logger, self.keep)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, (alias.is_installed(), self._packed)

    @cached_property
    def _packed(self) -> bytes:
        """The pickled content. Lambdas, closures and what the started script defines are pickled by value, so that workers need
        not import the script; it is compressed, because module names in it would otherwise look like such a need. It is pickled
        only once: scripts may give their logger the Learner later, which a restarted worker must not be sent."""
        import cloudpickle  # type: ignore[import-untyped]

        return zlib.compress(cloudpickle.dumps((self.build, self.logger, self.keep, self.rendering)))


def _unpacked(aliased: bool, packed: bytes) -> EnvMaker:
    if aliased:
        alias.install()  # before anything of the script is imported
    return EnvMaker(*ForkingPickler.loads(zlib.decompress(packed)))
