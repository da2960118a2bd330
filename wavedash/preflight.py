"""What is looked at before a run begins: `wavedash config check` does all of it and nothing else, `wavedash train` as it goes.

Both call the same functions, so that a file which is called valid trains: the name of the run, packages and device; what
the kind of environment has to check, which makes one or rehearses its task; the policy over its spaces.
"""
from __future__ import annotations

import torch

from wavedash import report
from wavedash.config import RunConfig
from wavedash.envs.kinds import kind_of
from wavedash.errors import UserError
from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.runs.folder import check_name


def check_run(config: RunConfig) -> None:
    """Raises UserError for whatever `train` would refuse before its first iteration."""
    from wavedash.training import make_policy

    check_surroundings(config)
    device = usable_device(config)
    make_policy(kind_of(config.env).spaces(config.env, device), config)


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
