"""Which settings of a Rocket League task may change while a run runs, and how they are changed.

Weights of rewards and starts may change, whatever parts declare in `Part.settings`, whether an ending counts (null: it does
not), and shares of lanes; in lanes the same as in the main task. All of these are tensors that recorded steps read. The task as
it shall be is made anew from the configuration, which checks every value as a start would; the running tasks take its values
over.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from wavedash.config import LaneConfig, RocketConfig
from wavedash.errors import UserError
from wavedash.rocket import names
from wavedash.rocket.task import Task
from wavedash.tasks.endings import Ending
from wavedash.tasks.part import Part
from wavedash.tasks.starts import Mixture

OF_REWARDS = {"reward_mode": "mode", "dense_scale": "dense_scale", "team_spirit": "team_spirit", "zero_sum": "zero_sum"}
"""Options of the task, and the settings of `Rewards` that they are"""


def live_keys(config: RocketConfig) -> Iterator[tuple[str, ...]]:
    """The options of the task that may change."""
    yield from ((option,) for option in OF_REWARDS)
    yield from _of_parts(config)
    for name, lane in config.lanes.items():
        yield "lanes", name, "share"
        yield from (("lanes", name, *key) for key in _of_parts(lane))


def change_tasks(tasks: Iterable[Any], config: RocketConfig) -> None:
    """Gives the tasks of all shards the values of the configuration. UserError: one of them cannot be used."""
    wanted = Task.configured(config)
    rewards, start, endings = wanted.rewards, wanted.start, wanted.endings
    assert isinstance(start, Mixture)
    for task in tasks:
        _refuse_other_parts(task, wanted)
        for name, ending in task.endings.items():
            if name in endings.on:
                _refuse_other_options(name, ending, endings[name])
        task.lanes.set_shares({name: lane.share for name, lane in wanted.lanes.parts.items()})
        task.rewards.take_over(rewards, OF_REWARDS.values())
        task.start.take_over(start)
        for name, reward in task.rewards.parts.items():
            _take_over(reward, rewards.parts[name])
        for name, ending in task.endings.items():
            _take_over(ending, endings[name])
        task.endings.set_counting(endings.counting, endings.of_lanes)


def _of_parts(config: RocketConfig | LaneConfig) -> Iterator[tuple[str, ...]]:
    """What may change of the parts of a task or of a lane."""
    for name, value in (config.rewards or {}).items():
        yield from _weight("rewards", name, value)
        of = value.get("reward", name) if isinstance(value, Mapping) else name
        yield from (("rewards", name, setting) for setting in names.PARTS.find("reward", of).settings)
    for name, value in config.starts.items():
        yield from _weight("starts", name, value)
    for name in config.endings or {}:
        yield "endings", name
        yield from (("endings", name, setting) for setting in names.PARTS.find("ending", name).settings)


def _weight(kind: str, name: str, value: Any) -> Iterator[tuple[str, ...]]:
    """The keys of a weight. A part with options has it among them: a number in its place would drop the others."""
    if not isinstance(value, Mapping):
        yield kind, name
    yield kind, name, "weight"


def _take_over(part: Part, wanted: Part) -> None:
    part.set(**{setting: getattr(wanted, setting) for setting in part.settings})


def _refuse_other_parts(task: Task, wanted: Task) -> None:
    """Raises UserError if the task is to have other parts, or parts shared otherwise between lanes, than the running one."""
    def parts(of: Task) -> dict[str, set[str]]:
        assert isinstance(of.start, Mixture)
        in_lanes = (f"{lane}.{name}" for lane, own in of.rewards.lanes.items() for name in own or ())
        return {"lanes": set(of.lanes.names), "rewards": {*of.rewards.names, *in_lanes}, "starts": set(of.start.names),
                "endings": set(of.endings.keys())}

    running = parts(task)
    for kind, names_wanted in parts(wanted).items():
        if other := sorted(names_wanted ^ running[kind]):
            raise UserError(f"the {kind} of the task differ in {', '.join(other)} from those of the running one, which cannot "
                            "change while the run runs: stop the run and resume it")


def _refuse_other_options(name: str, ending: Ending, wanted: Ending) -> None:
    """Raises UserError if an ending is to have other options than settings, which only a resume can give it."""
    def value(part: Ending, option: str) -> Any:
        return getattr(part, option, part.given.get(option))

    for option in {**ending.given, **wanted.given}:
        if option not in ending.settings and value(ending, option) != value(wanted, option):
            raise UserError(f"ending {name!r} has {option}={value(ending, option)!r}, which cannot become "
                            f"{value(wanted, option)!r} while the run runs: stop the run and resume it with that")
