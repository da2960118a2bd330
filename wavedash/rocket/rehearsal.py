"""A rehearsal: every part of a task is called once, on a kick-off, before kernels are compiled and processes started. So what a
part gets wrong (a shape, an exception) is told at once, and by `wavedash config check` too.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from wavedash.config import RocketConfig
from wavedash.envs.errors import EnvError
from wavedash.envs.obs import ACTION_MASK
from wavedash.errors import UserError
from wavedash.rocket.names import name_of
from wavedash.rocket.parts import Part
from wavedash.rocket.seats import seated
from wavedash.rocket.starts.kickoff import Kickoff
from wavedash.rocket.state import GameState
from wavedash.rocket.watch import explain_beginnings

if TYPE_CHECKING:
    from wavedash.rocket.env import Task

ARENAS = 2
BEGINNINGS = 64


def rehearse(task: Task, config: RocketConfig) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
    """Observation and action space of one car. Raises EnvError for a part that does not do what its kind must. The parts are
    used up: they are bound to arenas that nobody plays in."""
    state, beginnings = _empty(ARENAS, config), _empty(BEGINNINGS, config)
    generator = torch.Generator().manual_seed(0)
    kickoff = Kickoff()
    for fresh in (state, beginnings):
        kickoff.bind(fresh)
        kickoff.write(fresh, generator)
    with _part(task.start, "start"):
        task.start.bind(beginnings)
        task.start.write(beginnings, generator)
    words = explain_beginnings(beginnings, task.start, 0, 0)
    if words is not None:
        raise EnvError(words)
    seats = state.seats
    everywhere = torch.ones(ARENAS, dtype=torch.bool)
    for part in task.parts:
        if part is not task.start:
            with _part(part, _kind(part)):
                part.bind(state)
                part.begin(state, everywhere)
    previous = state.clone()
    _shaped(task.action, "action", "parse", (ARENAS, seats, 8), lambda: task.action.parse(_any_action(task, seats), state))
    _shaped(task.observation, "observation", "build", (ARENAS, seats, task.observation.size(seats)),
            lambda: task.observation.build(state, torch.zeros(ARENAS, seats, 8)))
    for name, reward in zip(task.rewards.given_names, task.rewards.rewards, strict=True):
        _shaped(reward, f"reward {name!r}", "__call__", (ARENAS, seats), lambda: reward(state, previous, state.events))  # noqa: B023
    for ending in task.endings:
        _shaped(ending, "ending", "__call__", (ARENAS,), lambda: ending(state, previous, state.events))  # noqa: B023
    return observation_space(task, state), task.action.space


def observation_space(task: Task, state: GameState) -> gymnasium.Space[Any]:
    """Of one car. The parts must be bound to the state."""
    seen = gymnasium.spaces.Box(-np.inf, np.inf, (task.observation.size(state.seats),), np.float32)
    mask = task.action.mask(state)
    if mask is None:
        return seen
    return gymnasium.spaces.Dict({"obs": seen, ACTION_MASK: gymnasium.spaces.MultiBinary(mask.shape[-1])})


def _empty(arenas: int, config: RocketConfig) -> GameState:
    """With cars in all seats, and nothing else."""
    (seats,) = seated(1, config.blue, config.orange, config.hitbox)
    state = GameState.empty(arenas, len(seats))
    for field, values in zip((state.cars.team, state.cars.hitbox, state.cars.present), zip(*seats, strict=True), strict=True):
        field.copy_(torch.tensor(values))
    return state


def _any_action(task: Task, seats: int) -> Tensor:
    space = task.action.space
    space.seed(0)
    start = getattr(space, "start", 0)
    actions = np.stack([[np.asarray(space.sample()) - start for _ in range(seats)] for _ in range(ARENAS)])
    return torch.from_numpy(actions)


def _shaped(part: Part, what: str, method: str, shape: tuple[int, ...], call: Callable[[], Any]) -> None:
    name = what if "'" in what else f"{what} {name_of(part)!r}"
    with _part(part, what):
        made = call()
    found = list(made.shape) if isinstance(made, Tensor) else type(made).__name__
    if found != list(shape):
        meaning = {1: "arenas", 2: "arenas, cars", 3: "arenas, cars, numbers"}[len(shape)]
        raise EnvError(f"{name}: {method}() returned {found} for {ARENAS} arenas, not a tensor {list(shape)} ({meaning})")


@contextmanager
def _part(part: Part, what: str) -> Iterator[None]:
    """Whatever the part raises is told with its name."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        name = what if "'" in what else f"{what} {name_of(part)!r}"
        raise EnvError(f"{name} raised {type(error).__name__}: {error}. The traceback above shows where", True) from error


def _kind(part: Part) -> str:
    return next(base.__name__.lower() for base in type(part).__mro__ if base.__module__ == "wavedash.rocket.parts")
