"""A few arenas of a task, apart from the training: as they are configured, or with the controls chosen directly."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from wavedash.config import EnvConfig, RocketConfig
from wavedash.rocket.actions import Continuous
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task

FEW = 16


def one_size(rocket: RocketConfig, **changes: Any) -> RocketConfig:
    """The same task with teams of one size (the most frequent one), without lanes, and with these changes."""
    if rocket.sizes:
        blue, _, orange = max(rocket.sizes, key=lambda size: (rocket.sizes or {})[size]).partition("v")
        changes = {"sizes": None, "blue": int(blue), "orange": int(orange), **changes}
    return rocket.model_copy(update={"lanes": {}, "measures": [], **changes})


def affordable(rocket: RocketConfig, count: int) -> int:
    """How many of so many arenas are made: one of RocketSim takes a tenth of a second."""
    return count if rocket.simulator == "warp" else min(count, FEW)


@contextmanager
def arenas(config: EnvConfig, rocket: RocketConfig, count: int, device: torch.device,
           changed: Callable[[Task], None] = lambda task: None) -> Iterator[RocketEnv]:
    """So many arenas in this process that play the task `rocket`, after `changed` has changed its parts."""
    def task() -> Task:
        made = Task.configured(rocket)
        changed(made)
        return made

    small = config.model_copy(update={"count": count, "workers": 0, "groups": 1, "rocket": rocket})
    env = RocketEnv.configured(small, device, task)
    try:
        yield env
    finally:
        env.close()


def driven_directly(task: Task) -> None:
    """Makes controls the actions of a task, and lets its episodes go on for ever."""
    task.action, task.endings = Continuous(task.action.ticks, task.action.delay), type(task.endings)({})


def snapshot(env: RocketEnv) -> GameState:
    """A copy of the state of all arenas, on the host."""
    (state,) = env.states
    return state.clone().to("cpu")


def controls_of(env: RocketEnv) -> Tensor:
    """[E, C, 8]: a copy of the controls of the last step, on the host."""
    (controls,) = env.controls
    return controls.clone().cpu()
