"""make_env: from configuration to a VecEnv."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from wavedash.config import AUTO, EnvConfig
from wavedash.envs.errors import EnvError
from wavedash.envs.factory import EnvFactory
from wavedash.envs.frame_stack import FrameStackEnv
from wavedash.envs.kinds import kind_of
from wavedash.envs.local import LocalVecEnv
from wavedash.envs.pool import WorkerPool
from wavedash.envs.vec_env import VecEnv


def make_env(config: EnvConfig, device: torch.device | str = "cpu", line_up: Callable[[Any], Any] | None = None) -> VecEnv:
    """`config.count` environments of any kind, with `config.frame_stack` observations in one, whose rows live on `device`.
    `line_up` makes the line-up of each shard from its task, where the run has opponents."""
    if config.count == AUTO:
        raise EnvError("env.count=auto must be a number before environments are made: "
                       "config = wavedash.memory.choice.resolved(config, device)")
    kind, device = kind_of(config), torch.device(device)
    env = kind.make(config, device) if line_up is None else kind.make_against(config, device, line_up)
    return env if config.frame_stack == 1 else FrameStackEnv(env, config.frame_stack)


def one_by_one(make: EnvFactory, config: EnvConfig, device: torch.device) -> VecEnv:
    """Environments that are each made by one call: in this process when `workers` is 0, else in worker processes."""
    if config.workers == 0:
        return LocalVecEnv(make, config.count, device)
    return WorkerPool(make, config.count, config.workers, groups=config.groups, worker_timeout=config.worker_timeout,
                      device=device)
