"""Which settings of a Rocket League task may change while a run runs, and how they are changed.

Weights of rewards and starts may change, and whatever parts declare in `Part.settings`. All of these are tensors that recorded
steps read. The task as it shall be is made anew from the configuration, which checks every value as a start would; the running
tasks take its values over.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from wavedash.config import RocketConfig
from wavedash.rocket import names
from wavedash.rocket.task import Task
from wavedash.tasks.part import Part
from wavedash.tasks.starts import Mixture

OF_REWARDS = {"reward_mode": "mode", "dense_scale": "dense_scale", "team_spirit": "team_spirit", "zero_sum": "zero_sum"}
"""Options of the task, and the settings of `Rewards` that they are"""


def live_keys(config: RocketConfig) -> Iterator[tuple[str, ...]]:
    """The options of the task that may change."""
    yield from ((option,) for option in OF_REWARDS)
    for name, value in config.rewards.items():
        yield from _weight("rewards", name, value)
        of = value.get("reward", name) if isinstance(value, Mapping) else name
        yield from (("rewards", name, setting) for setting in names.PARTS.find("reward", of).settings)
    for name, value in config.starts.items():
        yield from _weight("starts", name, value)
    for name in config.endings:
        yield from (("endings", name, setting) for setting in names.PARTS.find("ending", name).settings)


def change_tasks(tasks: Iterable[Any], config: RocketConfig) -> None:
    """Gives the tasks of all shards the values of the configuration. UserError: one of them cannot be used."""
    wanted = Task.configured(config)
    for task in tasks:
        task.rewards.set_weights(wanted.rewards.weights)
        task.rewards.set(**{setting: getattr(wanted.rewards, setting) for setting in OF_REWARDS.values()})
        assert isinstance(wanted.start, Mixture)
        task.start.set_weights(wanted.start.shares)
        for name, reward in task.rewards.parts.items():
            _take_over(reward, wanted.rewards.parts[name])
        for name, ending in task.endings.items():
            _take_over(ending, wanted.endings[name])


def _weight(kind: str, name: str, value: Any) -> Iterator[tuple[str, ...]]:
    """The keys of a weight. A part with options has it among them: a number in its place would drop the others."""
    if not isinstance(value, Mapping):
        yield kind, name
    yield kind, name, "weight"


def _take_over(part: Part, wanted: Part) -> None:
    part.set(**{setting: getattr(wanted, setting) for setting in part.settings})
