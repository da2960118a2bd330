"""A rehearsal: every part of a task is called once, on a kick-off, before kernels are compiled and processes started. So an
error in a part (a wrong shape, an exception) is reported at once, also by `wavedash config check`.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from wavedash.config import RocketConfig
from wavedash.envs.errors import EnvError
from wavedash.envs.obs import ACTION_MASK
from wavedash.errors import UserError
from wavedash.rocket import names
from wavedash.rocket.parts import Measure, Outcome, Part, Player, Start
from wavedash.rocket.seats import arena_seats
from wavedash.rocket.starts.kickoff import Kickoff
from wavedash.rocket.state import GameState
from wavedash.rocket.watch import explain_beginnings
from wavedash.tasks.declared import refuse_undeclared
from wavedash.tasks.lookup import name_of
from wavedash.tasks.starts import Mixture

if TYPE_CHECKING:
    from wavedash.rocket.task import Task

ARENAS = 2
BEGINNINGS = 64


def rehearse_player(player: Player, config: RocketConfig) -> None:
    """Raises UserError if the player cannot play in arenas with so many cars. It cannot be used afterwards."""
    player.bind(empty_arenas(ARENAS, config))


def rehearse(task: Task, config: RocketConfig) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
    """Observation and action space of one car. Raises EnvError for a part that does not do what its kind must. The parts cannot
    be used afterwards: they are bound to the arenas of the rehearsal."""
    state, beginnings = empty_arenas(ARENAS, config), empty_arenas(BEGINNINGS, config)
    generator = torch.Generator().manual_seed(0)
    kickoff = Kickoff()
    for fresh in (state, beginnings):
        kickoff.bind(fresh)
        kickoff.write(fresh, generator)
    task.bind_lanes(beginnings)
    _rehearse_start(task.start, beginnings, generator)
    seats, previous, events = state.seats, state.clone(), state.events
    _called(task.action, state, "parse", (ARENAS, seats, 8), lambda: task.action.parse(_any_action(task, seats), state))
    with _named(task.observation, "observation"):
        seen = task.observation.size(seats)
    _called(task.observation, state, "build", (ARENAS, seats, seen),
            lambda: task.observation.build(state, torch.zeros(ARENAS, seats, 8)))
    for name, reward in zip(task.rewards.given_names, task.rewards.rewards, strict=True):
        _called(reward, state, "__call__", (ARENAS, seats), partial(reward, state, previous, events), f"reward {name!r}")
    for ending in task.endings.values():
        _called(ending, state, "__call__", (ARENAS,), partial(ending, state, previous, events))
    for name, measure in task.measures.each():
        _called(measure, state, "__call__", (ARENAS, seats), partial(_decided, measure, state, previous), f"measure {name!r}")
    return observation_space(task, state), task.action.space


def _decided(measure: Measure, state: GameState, previous: GameState) -> Tensor:
    """[E, C]: what the measure says, with the shape of all that it says."""
    outcome = measure(state, previous, state.events)
    if not isinstance(outcome, Outcome):
        raise TypeError(f"it returned {type(outcome).__name__}, not a wavedash.rocket.parts.Outcome")
    if measure.timed != (outcome.ticks is not None):
        raise TypeError("its outcome must have `ticks` if it is timed, and only then")
    return outcome.over & outcome.success if outcome.ticks is None else outcome.over & outcome.success & (outcome.ticks > 0)


def _rehearse_start(start: Start, beginnings: GameState, generator: torch.Generator) -> None:
    for each in start.starts if isinstance(start, Mixture) else [start]:
        written = beginnings.clone()
        with _named(each, "start") as name:
            each.bind(written)
            with refuse_undeclared(each, name, [written.memory]):
                each.write(written, generator)
    start.bind(beginnings)
    start.write(beginnings, generator)
    message = explain_beginnings(beginnings, start, 0, 0)
    if message is not None:
        raise EnvError(message)


def observation_space(task: Task, state: GameState) -> gymnasium.Space[Any]:
    """The observation space of one car. The parts must be bound to the state."""
    seen = gymnasium.spaces.Box(-np.inf, np.inf, (task.observation.size(state.seats),), np.float32)
    mask = task.action.mask(state)
    if mask is None:
        return seen
    return gymnasium.spaces.Dict({"obs": seen, ACTION_MASK: gymnasium.spaces.MultiBinary(mask.shape[-1])})


def empty_arenas(arenas: int, config: RocketConfig) -> GameState:
    """A state of zeros, but with cars in all seats: those of the largest teams that are configured."""
    size = config.largest
    (seats,) = arena_seats(1, size.blue, size.orange, config.hitbox)
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


def _called(part: Part, state: GameState, method: str, shape: tuple[int, ...], call: Callable[[], Any], what: str = "") -> None:
    """Binds the part, begins episodes, calls it and checks the shape of the result. `what`: its kind and name, where its class
    does not tell."""
    everywhere = torch.ones(ARENAS, dtype=torch.bool)
    with _named(part, what or names.kind_of(part)) as name:
        part.bind(state)
        with refuse_undeclared(part, name, [state.memory]):
            part.begin(state, everywhere)
            made = call()
    found = list(made.shape) if isinstance(made, Tensor) else type(made).__name__
    if found != list(shape):
        meaning = {1: "arenas", 2: "arenas, cars", 3: "arenas, cars, numbers"}[len(shape)]
        raise EnvError(f"{name}: {method}() returned {found} for {ARENAS} arenas, not a tensor {list(shape)} ({meaning})")


@contextmanager
def _named(part: Part, what: str) -> Iterator[str]:
    """Yields the name of the part, and adds it to whatever the part raises."""
    name = what if "'" in what else f"{what} {name_of(part)!r}"
    try:
        yield name
    except UserError:
        raise
    except Exception as error:
        raise EnvError(f"{name} raised {type(error).__name__}: {error}. The traceback above shows where", True) from error
