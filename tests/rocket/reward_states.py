"""States for the tests of rewards: one in which nothing moves, and random ones."""
from __future__ import annotations

from dataclasses import fields

import torch

from tests.rocket.random_states import random_state
from wavedash.rocket.state import GameState


def game(blue: int = 1, orange: int = 1, arenas: int = 1) -> GameState:
    """Cars stand on their wheels in the middle of the field, nose to +X; nothing moves, and there are no events."""
    state = GameState.empty(arenas, blue + orange)
    state.clear_events()
    state.cars.present.fill_(True)
    state.cars.team.copy_(torch.arange(blue + orange) >= blue)
    state.cars.rotation.copy_(torch.eye(3))
    state.cars.on_ground.fill_(True)
    return state


def scene(arenas: int, blue: int, orange: int, seed: int, like: GameState | None = None) -> GameState:
    """A random state in which the ball is often where rewards depend on it, and empty seats hold NaN."""
    state = random_state(arenas, blue, orange, seed)
    dice = torch.Generator().manual_seed(seed)
    under = torch.rand(arenas, generator=dice) < 0.7
    wheels = state.cars.position[:, 0] - state.cars.up[:, 0] * (100 + 120 * torch.rand(arenas, 1, generator=dice))
    state.ball.position.copy_(torch.where(under.unsqueeze(-1), wheels, state.ball.position))
    state.ball.position[: arenas // 10, :2] = 0
    if like is not None:
        for name in ("team", "hitbox", "present"):
            getattr(state.cars, name).copy_(getattr(like.cars, name))
    empty = ~state.cars.present
    for field in fields(state.cars):
        values = getattr(state.cars, field.name)
        if values.is_floating_point():
            values[empty] = torch.nan
    state.events.touches[empty] = 1
    return state
