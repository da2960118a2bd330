"""Checks before a run begins. `wavedash config check` does all of them and nothing else, `wavedash train` does them as it
starts.

Both call the same functions, so that a file that passes the check can be trained: the name of the run, packages and device; the
checks of the kind of environment, which makes one or rehearses its task; the policy for its spaces.
"""
from __future__ import annotations

import torch

from wavedash import report
from wavedash.config import RunConfig
from wavedash.curriculum.plan import Plan
from wavedash.envs.kinds import Spaces, kind_of
from wavedash.envs.spaces import space_to_json
from wavedash.errors import UserError
from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.runs.folder import check_name


def check_run(config: RunConfig, trust: bool = False) -> str:
    """Raises UserError for whatever `train` would refuse before its first iteration. `trust`: as in `train`. Returns what is
    chosen on this machine for options that say `auto`."""
    from wavedash.assembly import make_policy
    from wavedash.memory.choice import chosen, resolved
    from wavedash.runs.initial import initialize

    check_setup(config, trust)
    config = Plan(config).stages()[0]
    device = usable_device(config)
    asked, config = config, resolved(config, device)
    spaces = kind_of(config.env).spaces(config.env, device)
    initialize(make_policy(spaces, config), config)
    _check_opponents(config, spaces, device, trust)
    return chosen(asked, config, device)


def check_setup(config: RunConfig, trust: bool = False) -> None:
    """Checks what takes little time: the name of the run, the packages of its reports, the players that it is rated by, and its
    phases. `trust`: code that a policy of another user names may run."""
    check_name(config.name)
    report.check(config)
    if config.phases:
        check_phases(config, trust)
    else:
        _check_panel(config, trust)


def check_phases(config: RunConfig, trust: bool = False) -> None:
    """Raises UserError if a phase has settings that cannot be, or other spaces than the first: a mistake in a phase would
    otherwise end the run hours later."""
    plan, device = Plan(config), torch.device("cpu")
    plan.check()
    first: Spaces | None = None
    for phase, stage in zip(config.phases, plan.stages(), strict=True):
        try:
            _check_panel(stage, trust)
            spaces = kind_of(stage.env).spaces(stage.env, device)
            first = spaces if first is None else first
            _refuse_other_spaces(spaces, first)
            if not stage.undecided:
                _check_opponents(stage, spaces, device, trust)
        except UserError as error:
            raise UserError(f"phase {phase.name!r}: {error}") from error


def _refuse_other_spaces(here: Spaces, first: Spaces) -> None:
    for what in ("observation_space", "action_space"):
        if space_to_json(getattr(here, what)) != space_to_json(getattr(first, what)):
            raise UserError(f"its {what} is {getattr(here, what)}, that of the first phase {getattr(first, what)}. One policy "
                            "plays all phases, so both must be equal")


def _check_panel(config: RunConfig, trust: bool) -> None:
    """Looks up the players that a run is rated by."""
    if config.rating is None:
        return
    from wavedash.league.panel import find_panel
    from wavedash.league.reference import read_references

    find_panel(config, trust)
    read_references(config.rating.reference)


def _check_opponents(config: RunConfig, spaces: Spaces, device: torch.device, trust: bool) -> None:
    """Looks up the opponents of a run, and seats them."""
    if config.opponents is None:
        return
    from wavedash.assembly import make_policy
    from wavedash.league.seating import Seating, invited

    Seating(config, make_policy(spaces, config), invited(config, trust=trust)).rehearse(config, device)


def usable_device(config: RunConfig, ranks: Ranks = ALONE) -> torch.device:
    """Returns the device that `config.device` means on this machine."""
    return named_device(config.device, ranks)


def named_device(name: str, ranks: Ranks = ALONE) -> torch.device:
    """Returns the device of this name: auto, cpu, cuda, cuda:1. UserError: this machine does not have it."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and ranks.size > 1:
        name = f"cuda:{ranks.local_rank}"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UserError(f"there is no device '{name}': use auto, cpu, cuda, or cuda:1 for the second one") from error
    try:
        return torch.empty(0, device=device).device  # `cuda` gets a number
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"device {name} cannot be used: {str(error).splitlines()[0]}. `wavedash doctor` shows what there is; "
                        "cpu always works") from error
