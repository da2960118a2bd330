"""The first beginnings of episodes: poses that should not be, flips, cars on their roof, and what becomes of them."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from wavedash.config import EnvConfig, RocketConfig
from wavedash.findings import Findings, table
from wavedash.rocket.constants import BALL_RADIUS, GRAVITY, HITBOXES, TICK_RATE
from wavedash.rocket.debug.arenas import affordable, arenas, driven_directly, one_size, snapshot
from wavedash.rocket.possible import rules
from wavedash.rocket.rewards.measures import on_roof
from wavedash.rocket.state import CONTROLS, GameState
from wavedash.tasks.starts import Mixture
from wavedash.trained_policy import TrainedPolicy

ARENAS = 256
SECONDS = 1.0
"""How long cars are left to themselves"""
DEEP = 5.0
"""uu by which a corner of a car may be under the floor: starts round"""
KICKED = 400.0
"""uu/s: what pushes a car by more in its first step, though it touches nothing that it should, is an overlap"""
MOST = 0.5
"""The share of cars on their roof that is odd, unless the start is there to teach just that"""


def examine_starts(config: EnvConfig, device: torch.device, policy: TrainedPolicy) -> Findings:
    assert config.rocket is not None
    found = Findings()
    for name, rocket in _tasks(config.rocket):
        _examine(found, name, config, rocket, device)
    return found


def _tasks(rocket: RocketConfig) -> Iterator[tuple[str, RocketConfig]]:
    """The main task and those of the lanes, by name: they begin differently."""
    yield "", one_size(rocket)
    for name, lane in rocket.lanes.items():
        yield name, one_size(rocket, starts=lane.starts)


def _examine(found: Findings, lane: str, config: EnvConfig, rocket: RocketConfig, device: torch.device) -> None:
    with arenas(config, rocket, affordable(rocket, ARENAS), device, driven_directly) as env:
        env.reset(0)
        task = env.tasks[0]
        first = snapshot(env)
        writers = _writers(task.start, list(rocket.starts), first.arenas)
        nothing = torch.zeros(env.num_rows, len(CONTROLS), device=env.device)
        env.step(nothing)
        second = snapshot(env)
        for _ in range(round(SECONDS * TICK_RATE / task.action.ticks) - 1):
            env.step(nothing)
        last = snapshot(env)
    rows = []
    for name, mine in writers:
        label = f"{lane}/{name}" if lane else name
        rows.append((label, int(mine.sum()), *_row(first, last, mine)))
        for problem in _problems(label, first, second, last, mine, task.action.ticks / TICK_RATE):
            found.problem(problem)
    if lane:
        found.say(f"lane {lane}:")
    found.say(f"{first.arenas} beginnings, {first.seats} cars each; after {SECONDS:g} s without any control:",
              *table(("start", "drawn", "speed uu/s", "height uu", "in the air", "with a flip", "roof down", "boost",
                      "then on wheels", "then on the roof"), rows))
    if missing := [name for name in rocket.starts if name not in [name for name, _ in writers]]:
        found.say(f"never drawn, by their weights: {', '.join(missing)}")


def _writers(start: Any, names: list[str], arenas: int) -> list[tuple[str, Tensor]]:
    """Which arenas [E] each start has written. The first beginning of every arena is the one that it began with."""
    if not isinstance(start, Mixture) or len(start.starts) == 1:
        return [(names[0], torch.ones(arenas, dtype=torch.bool))]
    drawn = start.drawn[:arenas].cpu()
    return [(name, drawn == i) for i, name in enumerate(start.names) if bool((drawn == i).any())]


def _row(first: GameState, last: GameState, mine: Tensor) -> tuple[str, ...]:
    here = first.cars.present & mine.unsqueeze(-1)
    cars, then = first.cars, last.cars

    def mean(x: Tensor) -> float:
        return float(x[here].float().mean())

    flip = cars.has_flip[here & ~cars.on_ground].float().mean()
    air = mean(~cars.on_ground)
    return (f"{mean(cars.velocity.norm(dim=-1)):.0f}", f"{mean(cars.position[..., 2]):.0f}", f"{air:.0%}",
            f"{float(flip):.0%}" if air else "", f"{mean(cars.up[..., 2] < -0.5):.0%}", f"{mean(cars.boost):.0f}",
            f"{mean(then.on_ground):.0%}", f"{mean(on_roof(then)):.0%}")


def _problems(name: str, first: GameState, second: GameState, last: GameState, mine: Tensor, seconds: float) -> Iterator[str]:
    here = first.cars.present & mine.unsqueeze(-1)
    cars, count = first.cars, int(here.sum())

    def share(x: Tensor) -> str:
        return f"{int((x & here).sum())} of {count} cars"

    for rule in rules(first):
        broken = rule.broken & (mine if rule.broken.dim() == 1 else here)
        if bool(broken.any()):
            yield f"start {name!r} writes a state that cannot be in the game: {rule.field} {rule.says}"
    deep = lowest_corner(first) < -DEEP
    if bool((deep & here).any()):
        lowest = float(lowest_corner(first)[here].min())
        yield (f"start {name!r} puts {share(deep)} into the floor: a corner of the body is {-lowest:.0f} uu below it. A car on "
               "its wheels is at z = 17")
    expected = torch.tensor([0.0, 0.0, -GRAVITY * seconds])
    push = (second.cars.velocity - cars.velocity - torch.where(cars.on_ground.unsqueeze(-1), 0.0, expected)).norm(dim=-1)
    near = close_to_others(first)
    if bool((near & here).any()):
        yield (f"start {name!r} puts {share(near)} into the ball or into each other: they are thrown apart in the first step, "
               f"by up to {float(push[near & here].max()):.0f} uu/s")
    kicked = (push > KICKED) & ~near & ~deep & second.cars.alive & ~_touched_something(first, second)
    if bool((kicked & here).any()):
        yield (f"start {name!r}: {share(kicked)} are pushed by more than {KICKED:g} uu/s in their first step without any "
               "control: they overlap a wall, the ceiling or a goal")
    upside_down = cars.up[..., 2] < -0.5
    roofs = float(on_roof(last.cars)[here].float().mean())
    if roofs > MOST and name.rpartition("/")[2] != "turtle":
        why = f"; {share(upside_down)} begin with the roof down" if bool((upside_down & here).any()) else ""
        yield (f"start {name!r} leaves {roofs:.0%} of the cars on their roof after {SECONDS:g} s{why}. The columns of "
               "cars.rotation are forward, right, up, and up points to +z on the floor")
    flies = (second.cars.wheel_contact.sum(-1) < 3) & ~second.cars.has_contact & (second.cars.position[..., 2] > 60)
    wrong = cars.on_ground & here & flies
    if int(wrong.sum()) > 0.1 * count:
        yield (f"start {name!r} says of {share(wrong)} that they are on the ground, and they are in the air: set "
               "cars.on_ground and cars.wheel_contact to false where a car flies, or the policy sees and may jump what is not "
               "there")


def lowest_corner(state: GameState) -> Tensor:
    """[E, C]: the height of the lowest corner of every car's body."""
    sizes, offsets = (torch.tensor([getattr(box, name) for box in HITBOXES]) for name in ("size", "offset"))
    cars = state.cars
    vertical, kind = cars.rotation[..., 2, :], cars.hitbox.long()
    center = cars.position[..., 2] + (vertical * offsets[kind]).sum(-1)
    return center - (vertical.abs() * sizes[kind] / 2).sum(-1)


def close_to_others(state: GameState) -> Tensor:
    """[E, C]: cars whose body overlaps the ball or another car for certain: a sphere within it does."""
    cars = state.cars
    inner = min(min(box.size) for box in HITBOXES) / 2
    widths = torch.tensor([box.offset for box in HITBOXES])[cars.hitbox.long()]
    center = cars.position + (cars.rotation @ widths.unsqueeze(-1)).squeeze(-1)
    to_ball = (center - state.ball.position.unsqueeze(1)).norm(dim=-1) < BALL_RADIUS + inner
    apart = (center.unsqueeze(1) - center.unsqueeze(2)).norm(dim=-1)
    pair = cars.present.unsqueeze(1) & cars.present.unsqueeze(2) & ~torch.eye(state.seats, dtype=torch.bool)
    return to_ball | ((apart < 2 * inner) & pair).any(-1)


def _touched_something(first: GameState, second: GameState) -> Tensor:
    """[E, C]: cars that have a right to be pushed: they land, hit the ball or bump one another."""
    touched = (second.events.touches > 0) | (second.events.bumped >= 0) | (second.cars.contact_car >= 0)
    landed = second.cars.wheel_contact.any(-1) | (first.cars.velocity[..., 2] < -300) & (first.cars.position[..., 2] < 150)
    return touched | landed | second.cars.has_contact & (first.cars.velocity.norm(dim=-1) > KICKED / 2)
