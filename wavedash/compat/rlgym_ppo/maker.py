"""EnvMaker: the user's function that builds an environment, on its way into worker processes. Must not import torch."""
from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from multiprocessing.reduction import ForkingPickler
from typing import Any

import gymnasium

from wavedash.compat.rlgym_ppo import alias
from wavedash.compat.rlgym_ppo.metrics import WatchedEnv
from wavedash.compat.rlgym_ppo.rendering import Rendering
from wavedash.envs.adapters import as_host_env, is_rlgym
from wavedash.envs.host import HostEnv
from wavedash.envs.rlgym.gym_env import GymEnv


def host_env_of(env: Any) -> HostEnv:
    """RLGym v2, Gymnasium (known by a reset that returns a pair), or rlgym-ppo's own interface."""
    if hasattr(env, "as_host_env") or is_rlgym(env):
        return as_host_env(env)
    if isinstance(env, gymnasium.Env) and isinstance(env.reset(), tuple):
        return as_host_env(env)
    return env if isinstance(env, HostEnv) else GymEnv(env)


@dataclass(frozen=True)
class EnvMaker:
    """Makes environments of whatever `build` returns, watched by `logger` if there is one."""

    build: Callable[[], Any]
    logger: Any = None
    keep: int = 0
    """What was collected in so many steps is kept until it is asked for."""
    rendering: Rendering | None = None
    """How the first environment is shown; the others are not."""

    def for_env(self, index: int) -> EnvMaker:
        return self if index == 0 else replace(self, rendering=None)

    def __call__(self) -> HostEnv:
        built = self.build()
        env = host_env_of(built)
        if self.rendering is not None:
            env = self.rendering.of(env, built)
        return env if self.logger is None else WatchedEnv(env, self.logger, self.keep)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, (alias.is_installed(), self._packed)

    @cached_property
    def _packed(self) -> bytes:
        """Lambdas, closures and what the started script defines travel by value, so that workers need not import the script.
        Compressed, because names in it would otherwise be taken for a need to do so. Once: scripts let their logger know the
        Learner after it is made, and a worker that is started again must not be sent that."""
        import cloudpickle  # type: ignore[import-untyped]

        return zlib.compress(cloudpickle.dumps((self.build, self.logger, self.keep, self.rendering)))


def _unpacked(aliased: bool, packed: bytes) -> EnvMaker:
    if aliased:
        alias.install()  # before anything of the script is imported
    return EnvMaker(*ForkingPickler.loads(zlib.decompress(packed)))
