"""Where two simulators begin to differ: the first tick and fields, for all arenas in short and for two of them in detail."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from wavedash.bench.parity.compare import JUDGED, QUANTITIES, Trajectory, errors_of
from wavedash.bench.parity.scene import Scene, Script
from wavedash.rocket.state import CONTROLS, GameState

IN_UU = ("position", "velocity", "boost", "ball_hit_offset", "ball_hit_position", "ball_hit_impulse")
"""Fields to which the tolerance applies; to the others, whose values are about 1, a hundredth of it applies."""
OVERVIEW = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 120, 240)
"""Ticks whose distances are printed."""
IGNORED = ("ball.rotation",)
"""Fields that are not compared: RocketSim does not turn its ball."""
START = ("position", "velocity", "angular_velocity", "rotation", "boost", "on_ground", "wheel_contact")
"""Fields of a start that are printed."""


@dataclass
class Divergence:
    """The first difference in every arena."""

    tick: Tensor
    """[E]: the first tick at which a field differs; -1: none does."""
    fields: list[list[str]]
    """The fields that differ then, by arena."""


def find_divergence(scene: Scene, theirs: Trajectory, ours: Trajectory, tolerance: float) -> Divergence:
    arenas = theirs[0].arenas
    first = torch.full((arenas,), -1)
    fields: list[list[str]] = [[] for _ in range(arenas)]
    for tick in range(1, len(theirs)):
        if bool((first >= 0).all()):
            break
        for name, a, b, counts in _fields(scene, theirs[tick], ours[tick]):
            apart = counts & _differ(name, a, b, tolerance)
            for arena in (apart & ((first < 0) | (first == tick))).nonzero().flatten().tolist():
                first[arena] = tick
                fields[arena].append(name)
    return Divergence(first, fields)


def print_trace(scene: Scene, script: Script, theirs: Trajectory, ours: Trajectory, tolerance: float, around: int,
                arena: int | None = None, console: Console | None = None) -> None:
    """Print all arenas in a few lines, then the worst and the median one (or `arena`) tick by tick."""
    console = console or Console(width=170, highlight=False)
    found = find_divergence(scene, theirs, ours, tolerance)
    apart, arenas = found.tick >= 0, len(found.tick)
    console.print(f"{scene.name}: {int(apart.sum())} of {arenas} arenas differ within {len(theirs) - 1} ticks by more than "
                  f"{tolerance:g} uu or uu/s ({tolerance / 100:g} of anything else)")
    if not apart.any():
        return
    ticks = Counter(found.tick[apart].tolist())
    console.print("  first at tick: " + ", ".join(f"{tick} ({n} arenas)" for tick, n in sorted(ticks.items())[:12]))
    names = Counter(name for fields in found.fields for name in fields)
    console.print("  in the field:  " + ", ".join(f"{name} ({n})" for name, n in names.most_common(12)))
    size = _size(scene, theirs, ours, found)
    order = [number for number in size.argsort().tolist() if apart[number]]
    chosen = {"arena": arena} if arena is not None else {"worst arena": order[-1], "median arena": order[len(order) // 2]}
    for title, number in chosen.items():
        first = int(found.tick[number])
        _print_arena(console, f"{title} {number}", scene, script, theirs, ours, number, first, tolerance, around)


def _print_arena(console: Console, title: str, scene: Scene, script: Script, theirs: Trajectory, ours: Trajectory, arena: int,
                 first: int, tolerance: float, around: int) -> None:
    def one(state: GameState) -> GameState:
        return state.part(slice(arena, arena + 1))

    console.rule(f"{title}, first differs at tick {first}" if first >= 0 else f"{title}: no difference", align="left")
    start = one(theirs[0])
    for name, value, *_ in _fields(scene, start, start):
        if name.rpartition(".")[2] in START:
            console.print(f"  start {name:<24} {_text(value)}")
    for seat in scene.seats:
        console.print(f"  keys  seat {seat}: {_pressed(script.controls[:, arena, seat])}")
    overview = Table(title="distance by tick", title_justify="left")
    shown = [tick for tick in OVERVIEW if tick < len(theirs)]
    overview.add_column("", no_wrap=True)
    for tick in shown:
        overview.add_column(str(tick), justify="right", no_wrap=True)
    for body in scene.of:
        for name in QUANTITIES:
            cells = [errors_of(scene, body, one(theirs[tick]), one(ours[tick]))[name] for tick in shown]
            overview.add_row(f"{body} {name}", *(_short(float(x.max())) if len(x) else "-" for x in cells))
    console.print(overview)
    table = Table(title="fields that differ", title_justify="left")
    for column in ("tick", "field", "RocketSim", "ours", "difference"):
        table.add_column(column)
    middle = max(first, 1)
    for tick in range(max(0, middle - 2), min(len(theirs), middle + around)):
        for name, a, b, counts in _fields(scene, one(theirs[tick]), one(ours[tick])):
            if bool(counts & _differ(name, a, b, tolerance)):
                table.add_row(str(tick), name, _text(a), _text(b), _text(b - a, 2) if a.is_floating_point() else "")
        if tick >= first:
            table.add_section()
    if first >= 0:
        console.print(table)


def _fields(scene: Scene, theirs: GameState, ours: GameState) -> Iterator[tuple[str, Tensor, Tensor, Tensor]]:
    """Name, values [E, ...] of both, and a mask [E] of where they count: most fields of a demolished car mean nothing."""
    looked_at = {"pads", "game", "events", *("cars" if body == "car" else body for body in scene.of)}
    gone, everywhere = theirs.cars.is_demoed & ours.cars.is_demoed, torch.ones(theirs.arenas, dtype=torch.bool)
    for part, name, *_, per_car in GameState.layout(theirs.seats):
        if part not in looked_at or f"{part}.{name}" in IGNORED:
            continue
        a, b = (getattr(getattr(state, part), name) for state in (theirs, ours))
        if not per_car:
            yield f"{part}.{name}", a, b, everywhere
            continue
        for seat in scene.seats:
            always = part == "events" or name in ("is_demoed", "demo_timer")
            label = f"car {seat}.{name}" if part == "cars" else f"events {seat}.{name}"
            yield label, a[:, seat], b[:, seat], everywhere if always else ~gone[:, seat]


def _differ(name: str, a: Tensor, b: Tensor, tolerance: float) -> Tensor:
    """Mask [E] of the arenas in which a field differs."""
    if not a.is_floating_point():
        return (a != b).flatten(1).any(-1) if a.dim() > 1 else a != b
    limit = tolerance if name.rpartition(".")[2] in IN_UU else tolerance / 100
    close = (a - b).abs() <= limit  # false where one is NaN
    return ~(close.flatten(1).all(-1) if a.dim() > 1 else close)


def _size(scene: Scene, theirs: Trajectory, ours: Trajectory, found: Divergence) -> Tensor:
    """Differences [E] of velocity of the body that differs most: after 8 ticks, or at the end if nothing differs by then."""
    tick = JUDGED if bool(((found.tick >= 0) & (found.tick <= JUDGED)).any()) else -1
    a, b = theirs[tick], ours[tick]
    apart = []
    if "car" in scene.of:
        apart.append((b.cars.velocity - a.cars.velocity)[:, list(scene.seats)].norm(dim=-1).amax(-1))
    if "ball" in scene.of:
        apart.append((b.ball.velocity - a.ball.velocity).norm(dim=-1))
    return torch.stack(apart).amax(0).nan_to_num(nan=float("inf"))


def _short(x: float) -> str:
    return f"{x:.1g}" if x < 10 else f"{x:.0f}"


def _text(value: Tensor, digits: int = 6) -> str:
    numbers = value.flatten().tolist()
    if value.is_floating_point():
        return " ".join(f"{x:.{digits}g}" for x in numbers)
    return " ".join(str(int(x)) for x in numbers)


def _pressed(controls: Tensor) -> str:
    """Say what a car [T, 8] presses, and from which tick on."""
    changes, before = [], None
    for tick, held in enumerate(controls.tolist()):
        if held != before:
            pressed = " ".join(f"{name}={value:.3g}" for name, value in zip(CONTROLS, held, strict=True) if value)
            changes.append(f"{tick}: {pressed or 'nothing'}")
            before = held
    return "; ".join(changes[:8]) + ("; ..." if len(changes) > 8 else "")
