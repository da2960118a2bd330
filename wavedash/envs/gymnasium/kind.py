"""The kind of environments that `env.id` asks for: those that are registered with Gymnasium."""
from __future__ import annotations

from typing import TYPE_CHECKING

from wavedash.envs.kinds import Kind

if TYPE_CHECKING:
    import torch

    from wavedash.config import EnvConfig
    from wavedash.envs.vec_env import VecEnv


class GymnasiumKind(Kind):
    """Environments such as `CartPole-v1`."""

    about = "a Gymnasium id"

    def describe(self, config: EnvConfig) -> str:
        return config.id or ""

    def check(self, config: EnvConfig) -> None:
        """All options of `env` are for these environments."""

    def takes_workers(self, config: EnvConfig) -> bool:
        return True

    def make(self, config: EnvConfig, device: torch.device) -> VecEnv:
        from wavedash.envs.factory import EnvFactory
        from wavedash.envs.make import one_by_one

        return one_by_one(EnvFactory(config.id or "", config.kwargs, wrappers=tuple(config.wrappers)), config, device)
