"""What an action parser can do, what the policy chose in its first steps, and what came of it."""
from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from math import atan2, degrees
from typing import NamedTuple

import gymnasium
import torch
from rich.console import Console
from torch import Tensor

from wavedash.config import EnvConfig
from wavedash.debug.trial import play
from wavedash.envs.obs import action_mask
from wavedash.errors import UserError
from wavedash.findings import Findings, table
from wavedash.rocket.actions.coverage import SIDES, Coverage
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.debug.arenas import affordable, arenas, controls_of, one_size, snapshot
from wavedash.rocket.debug.effects import effects
from wavedash.rocket.debug.order import in_words, moved_by, swapped
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.state import BOOST, CONTROLS, HANDBRAKE, JUMP, STICKS, GameState
from wavedash.rocket.task import Task
from wavedash.trained_policy import TrainedPolicy

ARENAS, STEPS = 32, 64
SHOWN_STEPS = 6
VERBS = {JUMP: "jumps", BOOST: "boosts", HANDBRAKE: "pulls the handbrake"}
SAID_LATER = ("is never used", "is never pressed")
"""Warnings of `Coverage` that `_never` gives too, with what the first steps chose"""
STILL = 60.0
"""uu/s: cars that are slower stand"""


class Stepped(NamedTuple):
    """One step of all arenas, on the host."""

    before: GameState
    after: GameState
    action: Tensor
    """[E, C, ...]"""
    controls: Tensor
    """[E, C, 8]"""
    mask: Tensor | None
    """[E, C, n]"""
    goes_on: Tensor
    """[E, C] bool: a car of this step whose episode did not end in it"""


def examine_actions(config: EnvConfig, device: torch.device, policy: TrainedPolicy) -> Findings:
    assert config.rocket is not None
    found, rocket = Findings(), one_size(config.rocket)
    coverage = _coverage(found, Task.configured(rocket))
    with arenas(config, rocket, affordable(rocket, ARENAS), device) as env:
        stepped = _played(env, policy)
        ticks = env.tasks[0].action.ticks
        _first_steps(found, env, stepped, ticks)
    _chosen(found, stepped, coverage, ticks / TICK_RATE)
    return found


def _coverage(found: Findings, task: Task) -> Coverage | None:
    """Says what the parser can produce at all. None: that cannot be listed."""
    try:
        coverage = Coverage.of(task.action)
    except UserError as error:
        found.say(str(error))
        return None
    text = StringIO()
    coverage.show(Console(file=text, width=110, highlight=False))
    found.detail(text.getvalue())
    found.say(f"{coverage.name} has {len(coverage.controls):,} combinations of controls in the order {', '.join(CONTROLS)}")
    found.say(*moved_by(task.action))
    for message in swapped(coverage.controls):
        found.problem(message)
    for warning in coverage.warnings():
        if not warning.endswith(SAID_LATER) and " never goes " not in warning:
            found.problem(f"the action parser {coverage.name}: {warning}")
    if isinstance(task.action.space, gymnasium.spaces.Discrete):
        found.detail("choice by choice:", *table(("choice", *CONTROLS), (
            (number, *(f"{x:g}" for x in row)) for number, row in enumerate(coverage.controls.tolist()))), "")
    return coverage


def _played(env: RocketEnv, policy: TrainedPolicy) -> list[Stepped]:
    stepped: list[Stepped] = []
    for obs, action, step, before in play(env, policy, STEPS, lambda: snapshot(env)):
        after, shape, mask = snapshot(env), before.shape, action_mask(obs)
        ended = (step.terminated | step.truncated).view(shape).cpu()
        stepped.append(Stepped(before, after, action.view(*shape, *action.shape[1:]).cpu(), controls_of(env),
                               None if mask is None else mask.view(*shape, -1).bool().cpu(), ~ended & before.cars.present))
    return stepped


def _first_steps(found: Findings, env: RocketEnv, stepped: Sequence[Stepped], ticks: int) -> None:
    """Says what a car of each team chose in its first steps, and how it moved."""
    teams = stepped[0].before.cars.team[0].tolist()
    for seat in dict.fromkeys((0, next((seat for seat, team in enumerate(teams) if team == 1), 0))):
        rows = []
        for number, (before, after, action, controls, _, goes_on) in enumerate(stepped[:SHOWN_STEPS]):
            if not bool(goes_on[0, seat]):
                break
            old, new = (_at(state, seat) for state in (before, after))
            chosen = " ".join(f"{float(x):g}" for x in action[0, seat].reshape(-1))
            changes = (f"{a} > {b}" for a, b in zip(old, new, strict=True))
            rows.append((number + 1, chosen, in_words(controls[0, seat]), *changes, f"{_turned(before, after, seat):+.0f}"))
        found.say(f"the first steps of {env.name_row(seat)}, {ticks} ticks each, played apart from the training:",
                  *table(("step", "action", "controls", "forward uu/s", "height uu", "boost", "wheels", "degrees right"), rows,
                         left=("controls",)), "")


def _at(state: GameState, seat: int) -> tuple[str, ...]:
    """Forward speed, height, boost, and wheels that touch something."""
    cars = state.cars
    forward = (cars.velocity[0, seat] * cars.forward[0, seat]).sum()
    return (f"{float(forward):.0f}", f"{float(cars.position[0, seat, 2]):.0f}", f"{float(cars.boost[0, seat]):.0f}",
            f"{int(cars.wheel_contact[0, seat].sum())}")


def _turned(before: GameState, after: GameState, seat: int) -> float:
    """Returns by how many degrees the nose has turned to the right, in the frame of the car."""
    nose = after.cars.forward[0, seat]
    right, ahead = (float((nose * axis[0, seat]).sum()) for axis in (before.cars.right, before.cars.forward))
    return degrees(atan2(right, ahead))


def _chosen(found: Findings, stepped: Sequence[Stepped], coverage: Coverage | None, seconds: float) -> None:
    """How often each control was used in all steps, and what came of it on average."""
    goes_on = torch.stack([step.goes_on for step in stepped])
    controls = torch.stack([step.controls for step in stepped])[goes_on]  # [n, 8]
    count, came = len(controls), effects(stepped, seconds)
    sides = [[f"{float(x.float().mean()):.0%}" for x in (column < 0, column == 0, column > 0)]
             for column in controls.unbind(-1)]
    found.say(f"{count:,} steps of {goes_on.shape[1]} arenas: how often each control was below, at and above 0, and what came "
              "of it:",
              *table(("control", "-", "0", "+", "what came of it"), (
                  (name, *sides[i], came[i]) for i, name in enumerate(CONTROLS)), left=("what came of it",)))
    for control, name in enumerate(CONTROLS):
        _never(found, control, name, controls, stepped, coverage)
    last = stepped[-1].after.cars
    slow = float((last.velocity.norm(dim=-1)[last.present] < STILL).float().mean())
    if slow > 0.8:
        found.problem(f"{slow:.0%} of the cars stand still after {len(stepped) * seconds:.1f} s: look at throttle and boost "
                      "above")


def _never(found: Findings, control: int, name: str, controls: Tensor, stepped: Sequence[Stepped],
           coverage: Coverage | None) -> None:
    """Names a control that was never used, and why."""
    column, count = controls[:, control], len(controls)
    if control in SIDES:
        used = {side: bool((column * sign > 0).any()) for side, sign in zip(SIDES[control], (-1, 1), strict=True)}
        missing = [side for side, is_used in used.items() if not is_used]
        what = f"no action of the first {count:,} moves {name} {' or '.join(missing)}"
    else:
        missing = [] if bool((column > 0).any()) else [name]
        what = f"no action of the first {count:,} {VERBS[control]}"
    if missing:
        found.problem(f"{what}: {_why(control, missing, stepped, coverage)}")


def _why(control: int, missing: Sequence[str], stepped: Sequence[Stepped], coverage: Coverage | None) -> str:
    if coverage is None:
        return "look at the action parser"
    column = coverage.controls[:, control]
    able = column > 0 if control >= STICKS or missing == list(SIDES[control][1:]) else column < 0
    able = column != 0 if len(missing) == 2 else able
    if not bool(able.any()):
        return "the action parser has no choice that does"
    masks = [step.mask[step.goes_on] for step in stepped if step.mask is not None and step.mask.shape[-1] == len(able)]
    if not masks:
        return f"{int(able.sum())} of {len(able)} combinations do, and the policy chooses none of them"
    open_to = float(torch.cat([(mask & able).any(-1) for mask in masks]).float().mean())
    return (f"{int(able.sum())} of {len(able)} choices do, and the mask allowed one of them in {open_to:.0%} of the steps"
            + (". Correct `mask` of the action parser: true must mean allowed" if open_to < 0.01 else ""))
