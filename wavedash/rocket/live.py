"""Which settings of a Rocket League task may change while a run runs: those of its parts and of lanes' parts, and how rewards
are combined (tasks/live.py)."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from wavedash.config import RocketConfig
from wavedash.rocket import names
from wavedash.rocket.task import Task
from wavedash.tasks.live import change_task, keys_of_parts

OF_REWARDS = {"reward_mode": "mode", "dense_scale": "dense_scale", "team_spirit": "team_spirit", "zero_sum": "zero_sum"}
"""Options of the task, and the settings of `Rewards` that they are"""


def live_keys(config: RocketConfig) -> Iterator[tuple[str, ...]]:
    """The options of the task that may change."""
    yield from ((option,) for option in OF_REWARDS)
    yield from keys_of_parts(config, names.PARTS)
    for name, lane in config.lanes.items():
        yield "lanes", name, "share"
        yield from (("lanes", name, *key) for key in keys_of_parts(lane, names.PARTS))


def change_tasks(tasks: Iterable[Any], config: RocketConfig) -> None:
    """Gives the tasks of all shards the values of the configuration. UserError: one of them cannot be used."""
    wanted = Task.configured(config)
    for task in tasks:
        change_task(task, wanted, OF_REWARDS.values())
