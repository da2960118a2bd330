"""Checks before a run begins. `wavedash config check` does all of them and nothing else, `wavedash train` does them as it
starts.

Both call the same functions, so that a file that passes the check can be trained: the name of the run, packages and device; the
checks of the kind of environment, which makes one or rehearses its task; the policy for its spaces.
"""
from __future__ import annotations

import difflib
from typing import Any

import torch

from wavedash import report
from wavedash.config import PhaseConfig, RunConfig
from wavedash.curriculum.plan import NEVER, Plan
from wavedash.curriculum.state import PhaseState
from wavedash.envs.kinds import Spaces, kind_of
from wavedash.errors import UserError
from wavedash.ppo.learner_state import fingerprint_of
from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.runs.changes import differing, live_keys_of
from wavedash.runs.compatible import differences
from wavedash.runs.folder import check_name


def check_run(config: RunConfig, trust: bool = False) -> str:
    """Raises UserError for whatever `train` would refuse before its first iteration. `trust`: as in `train`. Returns what is
    chosen on this machine for options that say `auto`."""
    from wavedash.assembly import make_policy
    from wavedash.distill.source import check_teacher
    from wavedash.imitate.source import check_demonstrations
    from wavedash.memory.choice import chosen, resolved
    from wavedash.runs.initial import initialize

    check_setup(config, trust)
    config = Plan(config).stages()[0]
    device = usable_device(config)
    asked, config = config, resolved(config, device)
    spaces = kind_of(config.env).spaces(config.env, device)
    policy = make_policy(spaces, config)
    initialize(policy, config)
    check_teacher(config, spaces, policy)
    check_demonstrations(config, spaces)
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
    first: dict[str, Any] = {}
    for number, (phase, stage) in enumerate(zip(config.phases, plan.stages(), strict=True)):
        try:
            _check_panel(stage, trust)
            spaces = kind_of(stage.env).spaces(stage.env, device)
            clip = stage.ppo.obs_clip if stage.ppo.normalize_obs else None
            here = fingerprint_of(spaces, stage.policy, clip)
            first = first or here
            if lines := differences(first, here):
                raise UserError("\n  ".join(["one policy plays all phases, but this one differs from the first:", *lines]))
            if not stage.undecided:
                _check_opponents(stage, spaces, device, trust)
            _refuse_fixed_ramps(plan, number)
            _refuse_unmeasured(phase, stage)
        except UserError as error:
            raise UserError(f"phase {phase.name!r}: {error}") from error


def _refuse_fixed_ramps(plan: Plan, number: int) -> None:
    """Raises UserError if a ramp moves a setting that cannot change while a run runs."""
    state = PhaseState().moved(number, 0)
    then, now = (plan.settings(state, steps) for steps in (0, NEVER))
    listed: tuple[str, ...] = ()
    if now.opponents is not None:
        from wavedash.league.league import live_options

        listed = live_options(now.opponents)
    live = live_keys_of(now, listed)
    if fixed := [name for key in differing(then, now) if (name := ".".join(map(str, key))) not in live]:
        raise UserError(f"{fixed[0]} cannot be a ramp, because it cannot change while a run runs; give it one value")


def _refuse_unmeasured(phase: PhaseConfig, stage: RunConfig) -> None:
    """Raises UserError if a phase waits for what nobody measures in it."""
    until = phase.until
    if until is None:
        return
    if until.rating is not None and stage.rating is None:
        raise UserError("it waits for a rating, but is not rated: add `rating: {}`")
    panel = [] if stage.rating is None else stage.rating.panel
    league = [] if stage.opponents is None else ["oldest", "newest", *stage.opponents.members]
    for condition, names in (("win_rate", panel + league), ("success", kind_of(stage.env).measured(stage.env))):
        for name in getattr(until, condition):
            if names is not None and name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                raise UserError(f"it waits for {condition} of {name!r}, which is not measured; "
                                + (f"did you mean {near[0]!r}?" if near else f"these are: {', '.join(names) or 'none'}"))


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
