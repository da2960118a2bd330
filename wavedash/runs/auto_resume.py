"""`wavedash train PRESET KEY=VALUE --resume auto`: what the command goes on with, and with which settings.

It goes on with a milestone that the user chooses from a list, where there is a terminal; else with the newest run of this name
that is not finished and whose weights fit; else it begins a new run. So the same command starts a training and goes on with it,
however often it is given.

Settings are those of the command, but a change that was made in the run meanwhile (`wavedash set`, `wavedash resume`) must not
be taken back by a command that is given once more: only what the command asks for otherwise than last time counts. `asked.yaml`
of the run holds what it asked for last time.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from wavedash.config import RunConfig
from wavedash.config_file import checked_config
from wavedash.curriculum.plan import Plan, counting
from wavedash.errors import UserError
from wavedash.runs.changes import differing, value_at
from wavedash.runs.checkpoint import Checkpoint
from wavedash.runs.compatible import FIXED, changes, differences
from wavedash.runs.content import reading
from wavedash.runs.find import Fork, Found, find_run, runs_under
from wavedash.runs.folder import RunFolder, runs_root
from wavedash.runs.milestones import Milestone
from wavedash.runs.trust import run_config

AUTO = "auto"
OFFERED = 20
"""The most milestones that a user may choose from, the newest ones"""
Fingerprint = Mapping[str, Any]
Say = Callable[[str], None]


class Choice(NamedTuple):
    """What a command goes on with."""

    found: Found
    config: RunConfig


def choose(config: RunConfig, resume: str, fingerprint: Callable[[], Fingerprint], trust: bool, say: Say) -> Choice | None:
    """Returns what a command with this configuration goes on with; None: a new run. `resume` is AUTO, or the path of a run,
    checkpoint or milestone. `fingerprint` gives that of the policy that the configuration asks for. `say` tells the user what
    was chosen and why. UserError: the path leads to nothing that can be gone on with."""
    if resume != AUTO:
        found = find_run(resume)
        say(f"going on with {found.checkpoint.path}, as asked for")
        return Choice(found, _settings(found, config, trust, say))
    folder = runs_root() / config.name
    runs = runs_under(folder)
    if not runs:
        say(f"new run: there is none in {folder} to go on with")
        return None
    now = fingerprint()
    milestone = _ask(runs, now, say) if sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty() else None
    if milestone is not None:
        say(f"going on with {milestone.checkpoint.path} in a new run, as chosen")
        fork = Fork(RunFolder(milestone.checkpoint.home), milestone.checkpoint)
        return Choice(fork, _settings(fork, config, trust, say))
    for run in runs:
        try:
            return _go_on(run, config, now, trust, say)
        except UserError as error:
            said = "\n    ".join(str(error).splitlines())
            say(f"  not {run.path}: {said}")
    say(f"new run: no other in {folder} can go on")
    return None


def _go_on(run: RunFolder, config: RunConfig, now: Fingerprint, trust: bool, say: Say) -> Choice:
    """UserError: this run cannot go on; the message says why."""
    checkpoint = run.newest()
    if checkpoint is None:
        raise UserError("no usable checkpoint")
    if lines := _differences(checkpoint, now):
        raise UserError("\n".join(["its policy does not fit", *lines]))
    found, told = Found(run, checkpoint), list[str]()
    settings = _settings(found, config, trust, told.append)
    if checkpoint.step >= settings.total_steps:
        raise UserError(f"finished after {checkpoint.step:,} steps; a higher total_steps would go on with it")
    say(f"going on with {run.path} at step {checkpoint.step:,}: the newest run of this name that fits and is not finished")
    for line in told:
        say(line)
    return Choice(found, settings)


def _differences(checkpoint: Checkpoint, now: Fingerprint) -> list[str]:
    with reading(checkpoint):
        return differences(checkpoint.load([])[1]["fingerprint"], now)


# --- settings ------------------------------------------------------------------------------------------------------------


def _settings(found: Found, config: RunConfig, trust: bool, say: Say) -> RunConfig:
    """Returns the settings to go on with. `say` is told of each that changes, and of each that the command asks for in vain."""
    recorded, asked = run_config(found.config, trust=trust), found.run.asked
    before = asked or recorded
    merged = settings_now(recorded, asked, config)
    if merged.phases:
        wanted = {key: value for key, value in differing(before, config).items() if key[0] != "phases"}
        merged = counting(merged, wanted, found.checkpoint.load([])[1])
    for key, why in FIXED.items():
        path = tuple(key.split("."))
        recorded_as_path = asked is None and key in ("init", "distill.teacher")
        if value_at(config, path) != value_at(before, path) and not recorded_as_path:
            say(f"  {key}={value_at(config, path)} does not count, it stays {value_at(recorded, path)}: {why}")
    for line in changes(recorded, merged).values():
        say(f"  {line}")
    for key in changes(config, merged):
        if asked is not None and key not in FIXED:
            say(f"  {key} stays as it was changed in the run; the command asks for the same as last time")
    return merged


def settings_now(recorded: RunConfig, asked: RunConfig | None, config: RunConfig) -> RunConfig:
    """Returns the settings of a run that goes on: those that are recorded in it, and whatever `config` asks for otherwise than
    the command before it, `asked`. If that is not known, all of `config` counts. What cannot change stays as recorded."""
    kept, wanted = recorded.model_dump(), config.model_dump()
    values = wanted if asked is None else _in_a_list(_three_way(*map(_by_name, (asked, config, recorded))), config)
    for key in (*FIXED, *(name for name in config.undecided)):  # `auto` was decided when the run began
        _keep(values, kept, key.split("."))
    return checked_config(values)


def _keep(values: dict[str, Any], kept: Mapping[str, Any], key: Sequence[str]) -> None:
    """Sets what a key leads to as it is in `kept`; the whole section around it, where only one of both has that."""
    name, *rest = key
    if rest and values[name] is not None and kept[name] is not None:
        _keep(values[name], kept[name], rest)
    else:
        values[name] = kept[name]


def _by_name(config: RunConfig) -> dict[str, Any]:
    """A configuration as nested mappings, its phases by their names: what a user has changed in one of them is kept if the
    command changes another."""
    phases = zip(config.phases, Plan(config).sets, strict=True)
    return {**config.model_dump(), "phases": {phase.name: {**phase.model_dump(), "set": values} for phase, values in phases}}


def _in_a_list(values: dict[str, Any], config: RunConfig) -> dict[str, Any]:
    """Reverses `_by_name`. Phases are in the order of `config`; those that only the run has come last."""
    phases, names = values["phases"], [phase.name for phase in config.phases]
    return {**values, "phases": [phases[name] for name in (*names, *(name for name in phases if name not in names))]}


_MISSING = object()


def _three_way(then: Any, now: Any, kept: Any) -> Any:
    """Returns `kept` with whatever differs between `then` and `now`."""
    if now == then:
        return kept
    if not (isinstance(now, Mapping) and isinstance(kept, Mapping)):
        return now
    old = then if isinstance(then, Mapping) else {}
    merged = {name: _three_way(old.get(name, _MISSING), now.get(name, _MISSING), kept.get(name, _MISSING))
              for name in {**kept, **now}}
    return {name: value for name, value in merged.items() if value is not _MISSING}


# --- the list ------------------------------------------------------------------------------------------------------------


def _ask(runs: Sequence[RunFolder], now: Fingerprint, say: Say) -> Milestone | None:
    """Lets the user choose among the milestones that fit. None: there are none, or the user wants none of them."""
    listed = [one for run in runs for one in run.milestones.listed()[0]]
    listed.sort(key=lambda one: one.checkpoint.manifest.saved_at, reverse=True)
    fitting = [one for one in listed[:OFFERED] if _fits(one, now)]
    if not fitting:
        return None
    say("milestones that fit:")
    for number, one in enumerate(fitting, 1):
        facts = one.facts()
        worth = [f"{facts['steps']:,} steps", facts["time"] or "", f"reward {_number(facts['mean_reward'])}",
                 f"rating {_number((facts['rating'] or {}).get('elo'))}"]
        say(f"  {number:2d}  {one.full_name}  ({', '.join(filter(None, worth))})  of {one.checkpoint.home.name}")
    while True:
        try:
            typed = input(f"go on from one of them in a new run: 1 to {len(fitting)}; Enter: none of them  ").strip()
        except EOFError:
            return None
        if not typed:
            return None
        if typed.isdecimal() and 1 <= int(typed) <= len(fitting):
            return fitting[int(typed) - 1]


def _fits(milestone: Milestone, now: Fingerprint) -> bool:
    try:
        return not _differences(milestone.checkpoint, now)
    except UserError:
        return False


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
