"""Whether rewards pay blue and orange alike: the same game, turned by half with the teams exchanged, must pay the other team
the same. A reward that forgets to turn the field for orange pays one of the teams for the wrong goal.
"""
from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from wavedash.config import EnvConfig, RocketConfig
from wavedash.rocket.debug.arenas import affordable, arenas, driven_directly, snapshot
from wavedash.rocket.state import CONTROLS, STICKS, GameState
from wavedash.rocket.task import Task

ARENAS, STEPS = 48, 24
STARTS = {"random": 1.0, "dribble": 1.0, "shot": 1.0}
"""Beginnings in which there is something to pay for"""
ALIKE = 1e-3
"""The share of a term by which rounding may make both sides differ"""


def paid_unlike(config: EnvConfig, rocket: RocketConfig, device: torch.device) -> Iterator[tuple[str, float, float]]:
    """Terms that pay differently, by how much on average, and what they pay on average. Teams must be equal."""
    if rocket.blue != rocket.orange:
        return
    played, count = rocket.model_copy(update={"starts": STARTS}), affordable(rocket, ARENAS)
    with arenas(config, played, count, device, driven_directly) as env:
        env.reset(0)
        states = [snapshot(env)]
        generator = torch.Generator().manual_seed(0)
        for _ in range(STEPS):
            env.step(_random_controls(env.num_rows, generator).to(env.device))
            states.append(snapshot(env))
    names = Task.configured(rocket).rewards.names
    plain, mirrored = _paid(rocket, states), _paid(rocket, [exchanged(state) for state in states])
    mirrored = mirrored.roll(rocket.blue, -1)  # a car is now in the seat of its counterpart
    for name, x, y in zip(names, plain, mirrored, strict=True):
        apart, size = (x - y).abs(), torch.maximum(x.abs(), y.abs())
        if bool((apart > ALIKE * size.max()).any()) and float(apart.mean()) > ALIKE * float(size.mean()):
            yield name, float(apart.mean()), float(size.mean())


def exchanged(state: GameState) -> GameState:
    """The same game turned by half: every car has the seat, the team and the place of its counterpart in the other team."""
    other = state.mirrored()
    half = state.seats // 2
    for part in (other.cars, other.events):
        for field in vars(part).values():
            field.copy_(field.roll(half, 1))
    for seat in (other.ball.last_touch, other.cars.contact_car, other.events.bumped, other.events.demolished,
                 other.pads.locked_car):
        seat.copy_(torch.where(seat < 0, seat, (seat + half) % state.seats))
    return other


def _paid(rocket: RocketConfig, states: list[GameState]) -> Tensor:
    """[K, T, E, C]: what each term pays in all steps."""
    rewards = Task.configured(rocket).rewards
    now, before = states[0].clone(), states[0].clone()  # parts may keep the state that they are bound to
    rewards.bind(now)
    rewards.begin(now, torch.ones(now.arenas, dtype=torch.bool))
    paid = []
    for state in states[1:]:
        before.copy_(now)
        now.copy_(state)
        rewards(now, before, now.events)
        paid.append(rewards.table.clone())
    return torch.stack(paid, 1)


def _random_controls(rows: int, generator: torch.Generator) -> Tensor:
    controls = 2 * torch.rand(rows, len(CONTROLS), generator=generator) - 1
    controls[:, 0] = controls[:, 0].abs()  # cars that drive meet the ball
    controls[:, STICKS:] -= 0.5
    return controls
