"""make_env: from configuration to a VecEnv."""
from __future__ import annotations

import torch

from wavedash.config import EnvConfig
from wavedash.envs.factory import EnvFactory
from wavedash.envs.frame_stack import FrameStackEnv
from wavedash.envs.local import LocalVecEnv
from wavedash.envs.pool import WorkerPool
from wavedash.envs.vec_env import VecEnv


def make_env(config: EnvConfig, device: torch.device | str = "cpu") -> VecEnv:
    """In this process when `workers` is 0, else in worker processes."""
    if config.rocket is not None:
        from wavedash.rocket.env import RocketEnv  # a large part of the package, which other worlds do without

        return RocketEnv.configured(config, device)
    make = EnvFactory(config.id or config.factory or "", config.kwargs, imported=config.factory is not None,
                      wrappers=tuple(config.wrappers))
    env: VecEnv
    if config.workers == 0:
        env = LocalVecEnv(make, config.count, device)
    else:
        env = WorkerPool(make, config.count, config.workers, groups=config.groups, worker_timeout=config.worker_timeout,
                         device=device)
    return env if config.frame_stack == 1 else FrameStackEnv(env, config.frame_stack)
