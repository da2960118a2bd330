"""How far apart two simulators are that played the same script, and whether they report the same events."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from wavedash.bench.parity.scene import Scene, Script, Target
from wavedash.rocket.constants import GRAVITY, TICK_RATE
from wavedash.rocket.simulator import Simulator
from wavedash.rocket.state import GameState

HORIZONS = (1, 8, 120)
"""Ticks after which states are compared."""
JUDGED = 8
"""Tick at which a scene is judged."""
QUANTITIES = ("position", "velocity", "angular_velocity")
POSITION_LIMIT, VELOCITY_LIMIT = 0.05, 0.5
"""Limits of median errors of flying and driving, in uu and uu/s."""
CHANGE_LIMITS = {Target.BOUNCE: 0.01, Target.HIT: 0.03, Target.BUMP: 0.03}
"""Limits of median errors of velocity, as shares of its change."""
EVENT_LIMIT = 0.99
"""Share of cars or arenas on which both must agree, for each kind of event."""
LEAST_CHANGE = 60.0
"""A smaller change of velocity within 8 ticks, in uu/s, is no bounce and no bump."""
FLAGS = ("on_ground", "has_jumped", "has_double_jumped", "has_flipped", "is_jumping", "is_flipping", "is_auto_flipping",
         "is_supersonic", "is_demoed", "has_contact")
"""Fields of a car on which both must agree at the tick of the verdict."""
BOOST_TOLERANCE, TIMER_TOLERANCE = 0.05, 0.01
"""Amounts of boost, and seconds of a pad's timer, that count as equal."""

Trajectory = list[GameState]
"""The states after tick 0, 1, 2..."""


def play_script(simulator: Simulator, script: Script) -> Trajectory:
    """Play a script tick by tick from its start; the simulator's state before is overwritten."""
    state = simulator.state
    state.memory.copy_(script.start.memory)
    simulator.place(torch.ones(state.arenas, dtype=torch.bool, device=simulator.device))
    states = [script.start]
    for controls in script.controls.to(simulator.device):
        simulator.step(controls, 1)
        states.append(state.clone().to("cpu"))
    return states


def joined(played: Sequence[Trajectory]) -> Trajectory:
    """The arenas of all trajectories, side by side."""
    return [GameState.over(torch.cat([state.memory for state in states]), states[0].seats)
            for states in zip(*played, strict=True)]


class Quantiles(NamedTuple):
    """The errors of many arenas in two numbers."""

    median: float
    most: float
    """The 99th percentile: 99 of 100 errors are smaller."""

    @classmethod
    def of(cls, errors: Tensor) -> Quantiles:
        """NaN counts as an infinite error."""
        if not len(errors):
            return cls(float("nan"), float("nan"))
        ranked = errors.nan_to_num(nan=float("inf"), posinf=float("inf")).sort().values
        last = len(ranked) - 1
        return cls(float(ranked[last // 2]), float(ranked[round(0.99 * last)]))


@dataclass
class Row:
    """What the table says of one scene."""

    scene: Scene
    starts: int
    errors: dict[tuple[str, int], dict[str, Quantiles]]
    """Errors by body and tick, by quantity."""
    change: Quantiles | None
    """Error of the velocity as a share of its change, where the scene is judged by that."""
    changed: int
    """Number of bodies of which that was measured."""
    agreement: dict[int, dict[str, float]]
    """Share of cars or arenas on which both agree, by tick and kind of event."""
    misses: list[str] = field(default_factory=list)
    """The targets that are missed, in words."""

    def worst_event(self, tick: int) -> tuple[str, float]:
        kinds = self.agreement[tick]
        name = min(kinds, key=kinds.__getitem__)
        return name, kinds[name]


def compare(scene: Scene, theirs: Trajectory, ours: Trajectory) -> Row:
    """The row of a scene; `theirs` is the reference."""
    ticks = [tick for tick in HORIZONS if tick < len(theirs)]
    errors = {(body, tick): errors_of(scene, body, theirs[tick], ours[tick]) for body in scene.of for tick in ticks}
    quantiles = {key: {name: Quantiles.of(values) for name, values in found.items()} for key, found in errors.items()}
    shares = _change_errors(scene, theirs, ours) if scene.target in CHANGE_LIMITS else None
    row = Row(
        scene, theirs[0].arenas, quantiles,
        None if shares is None else Quantiles.of(shares), 0 if shares is None else len(shares),
        {tick: agreement(scene, theirs, ours, tick) for tick in ticks if tick >= min(JUDGED, ticks[-1])},
    )
    row.misses = _misses(row)
    return row


def errors_of(scene: Scene, body: str, theirs: GameState, ours: GameState) -> dict[str, Tensor]:
    """Distances [n] by quantity, of the ball, or of the cars that have a part in the scene and are on the field in both."""
    if body == "ball":
        return {name: (getattr(ours.ball, name) - getattr(theirs.ball, name)).norm(dim=-1) for name in QUANTITIES}
    seats = list(scene.seats)
    there = (theirs.cars.alive & ours.cars.alive)[:, seats]
    return {name: (getattr(ours.cars, name) - getattr(theirs.cars, name))[:, seats].norm(dim=-1)[there] for name in QUANTITIES}


def _change_errors(scene: Scene, theirs: Trajectory, ours: Trajectory) -> Tensor:
    """Errors [n] of the velocity after 8 ticks, as shares of its change in the reference, where something happened there."""
    seats, states = list(scene.seats), (theirs[0], theirs[JUDGED], ours[JUDGED])
    if scene.target is Target.BUMP:
        before, after, other = (state.cars.velocity[:, seats].flatten(0, 1) for state in states)
    else:
        before, after, other = (state.ball.velocity for state in states)
        before = before - torch.tensor([0.0, 0.0, GRAVITY * JUDGED / TICK_RATE])
    change = (after - before).norm(dim=-1)
    happened = change > LEAST_CHANGE
    if scene.target is Target.HIT:
        happened = sum(state.events.touches.sum(-1) for state in theirs[1:JUDGED + 1]) > torch.zeros(len(change))
    return ((other - after).norm(dim=-1) / change)[happened]


def agreement(scene: Scene, theirs: Trajectory, ours: Trajectory, tick: int) -> dict[str, float]:
    """Share of cars (of arenas for goals and pads) on which both agree, by kind: events up to this tick, flags at this tick."""
    both = zip(_events(scene, theirs, tick).items(), _events(scene, ours, tick).values(), strict=True)
    same = {name: a == b for (name, a), b in both}
    a, b, seats = theirs[tick], ours[tick], list(scene.seats)
    if tick <= JUDGED:
        for name in FLAGS:
            same[name] = (getattr(a.cars, name) == getattr(b.cars, name))[:, seats]
        same["wheel_contact"] = (a.cars.wheel_contact == b.cars.wheel_contact).all(-1)[:, seats]
    same["boost"] = ((a.cars.boost - b.cars.boost).abs() < BOOST_TOLERANCE)[:, seats]
    same["pads"] = ((a.pads.timer - b.pads.timer).abs() < TIMER_TOLERANCE).all(-1)
    return {name: float(x.float().mean()) for name, x in same.items()}


def _events(scene: Scene, states: Trajectory, tick: int) -> dict[str, Tensor]:
    """Events from the start to this tick by kind, [E, seats] or [E]."""
    found: dict[str, Tensor] = {}
    for state in states[1:tick + 1]:
        events, seats = state.events, list(scene.seats)
        now = {
            "touch": events.touches > 0, "bump": events.bumped + 1, "demo": events.demolished + 1,
            "small_pads": events.small_pads, "big_pads": events.big_pads,
            "scorer": events.goal, "assist": events.assist, "shot": events.shot, "save": events.save,
        }
        for name, value in now.items():
            found[name] = found.get(name, torch.tensor(0)) + value[:, seats].int()
        found["goal"] = found.get("goal", torch.tensor(0)) + (state.game.goal + 1)
    return found | {"touch": found["touch"] > 0}


def _misses(row: Row) -> list[str]:
    """The targets that a row misses, in words."""
    misses, target = [], row.scene.target
    if target is Target.MOTION:
        for body in row.scene.of:
            found = row.errors[body, JUDGED]
            for name, limit in (("position", POSITION_LIMIT), ("velocity", VELOCITY_LIMIT)):
                if not found[name].median < limit:
                    misses.append(f"{body} {name}")
    elif target in CHANGE_LIMITS and not (row.change and row.change.median < CHANGE_LIMITS[target]):
        misses.append(f"{target.value} velocity")
    if target is not Target.SPREAD:
        misses += [name for name, share in row.agreement[row.scene.events_at].items() if not share > EVENT_LIMIT]
    return misses
