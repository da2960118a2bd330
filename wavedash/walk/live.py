"""Which settings of a walking task may change while a run runs: those of its parts (tasks/live.py), and the floor of
rewards."""
from __future__ import annotations

from collections.abc import Iterable, Iterator

from wavedash.config import WalkConfig
from wavedash.tasks.live import change_task, keys_of_parts
from wavedash.walk.names import PARTS
from wavedash.walk.task import Task

OF_REWARDS = {"reward_floor": "floor"}
"""Options of the task, and the settings of `Rewards` that they are"""


def live_keys(config: WalkConfig) -> Iterator[tuple[str, ...]]:
    """The options of the task that may change."""
    yield from ((option,) for option in OF_REWARDS)
    yield from keys_of_parts(config, PARTS)


def change_tasks(tasks: Iterable[Task], config: WalkConfig) -> None:
    """Gives running tasks the values of the configuration. UserError: one of them cannot be used."""
    for task in tasks:
        change_task(task, Task.configured(config, task.levels.ground), OF_REWARDS.values())
