"""What is looked at before a run begins: `wavedash config check` does all of it and nothing else, `wavedash train` as it goes.

Both call the same functions, so that a file which is called valid trains: the name of the run, packages and device; one
environment, or for Rocket League a rehearsal of the task; the policy over its spaces.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import torch

from wavedash import report
from wavedash.config import EnvConfig, RunConfig
from wavedash.envs.make import make_env
from wavedash.errors import UserError
from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.runs.folder import check_name


class Spaces(NamedTuple):
    """All of an environment that a policy is built from."""

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]


def check_run(config: RunConfig) -> None:
    """Raises UserError for whatever `train` would refuse before its first iteration."""
    from wavedash.training import make_policy

    check_surroundings(config)
    usable_device(config)
    make_policy(spaces_of(config.env), config)


def check_surroundings(config: RunConfig) -> None:
    """What takes no time to find out."""
    check_name(config.name)
    report.check(config)


def usable_device(config: RunConfig, ranks: Ranks = ALONE) -> torch.device:
    """The device that `config.device` means here."""
    name = config.device
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and ranks.size > 1:
        name = f"cuda:{ranks.local_rank}"
    try:
        return torch.empty(0, device=torch.device(name)).device  # `cuda` is now one with a number
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"device={name} cannot be used: {str(error).splitlines()[0]}. `wavedash doctor` shows what there is; "
                        "device=cpu always works") from error


def spaces_of(config: EnvConfig) -> Spaces:
    """Of an environment that was made, reset and stepped once; Rocket League needs no arena for that."""
    if config.rocket is not None:
        from wavedash.rocket.env import Task, check_simulator
        from wavedash.rocket.rehearsal import rehearse

        check_simulator(config.rocket)
        return Spaces(*rehearse(Task.configured(config.rocket), config.rocket))
    env = make_env(config.model_copy(update={"count": 1, "workers": 0}))
    try:
        env.reset(0)
        env.action_space.seed(0)
        first = getattr(env.action_space, "start", 0)
        env.step(torch.from_numpy((env.action_space.sample() - first)[None].repeat(env.num_rows, 0)))
        return Spaces(env.observation_space, env.action_space)
    finally:
        env.close()
