"""EnvMaker: the user's function that builds an environment, on its way into worker processes. Must not import torch."""
from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any

from wavedash.compat.rlgym_ppo.gym_world import world_of
from wavedash.compat.rlgym_ppo.metrics import WatchedWorld
from wavedash.envs.host import HostEnv


@dataclass(frozen=True)
class EnvMaker:
    """Makes worlds of whatever `build` returns, watched by `logger` if there is one."""

    build: Callable[[], Any]
    logger: Any = None
    keep: int = 0
    """What was collected in so many steps is kept until it is asked for."""

    def __call__(self) -> HostEnv:
        world = world_of(self.build())
        return world if self.logger is None else WatchedWorld(world, self.logger, self.keep)

    def __reduce__(self) -> tuple[Any, ...]:
        """Lambdas, closures and what the started script defines travel by value, so that workers need not import the script.
        Compressed, because names in it would otherwise be taken for a need to do so."""
        import cloudpickle  # type: ignore[import-untyped]

        return _unpacked, (zlib.compress(cloudpickle.dumps((self.build, self.logger, self.keep))),)


def _unpacked(packed: bytes) -> EnvMaker:
    return EnvMaker(*ForkingPickler.loads(zlib.decompress(packed)))
