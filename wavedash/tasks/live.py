"""Which settings of a task's parts may change while a run runs, and how they are changed.

Weights of rewards and starts may change, whatever parts declare in `Part.settings`, whether an ending counts (null: it does
not), and shares of lanes. All of these are tensors that captured steps read. The task as it shall be is made anew from the
configuration, which checks every value as a start would; the running tasks take its values over.
"""
from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Protocol

from wavedash.errors import UserError
from wavedash.tasks.endings import Ending
from wavedash.tasks.lookup import Lookup
from wavedash.tasks.part import Part
from wavedash.tasks.starts import Mixture
from wavedash.tasks.task import Task


class PartsConfig(Protocol):
    """The options of a task, or of a lane, that name its parts."""

    @property
    def rewards(self) -> Mapping[str, Any] | None: ...

    @property
    def starts(self) -> Mapping[str, Any]: ...

    @property
    def endings(self) -> Mapping[str, Any] | None: ...


def keys_of_parts(config: PartsConfig, lookup: Lookup) -> Iterator[tuple[str, ...]]:
    """The options that may change of the parts of a task or of a lane."""
    for name, value in (config.rewards or {}).items():
        yield from _weight("rewards", name, value)
        of = value.get("reward", name) if isinstance(value, Mapping) else name
        yield from (("rewards", name, setting) for setting in lookup.find("reward", of).settings)
    for name, value in config.starts.items():
        yield from _weight("starts", name, value)
    for name in config.endings or {}:
        yield "endings", name
        yield from (("endings", name, setting) for setting in lookup.find("ending", name).settings)


def change_task(task: Task, wanted: Task, of_rewards: Collection[str]) -> None:
    """Gives a running task the values of the one that is wanted. `of_rewards`: the settings of `Rewards` that may change.
    UserError: one of the values cannot be used."""
    rewards, start, endings = wanted.rewards, wanted.start, wanted.endings
    assert isinstance(start, Mixture) and isinstance(task.start, Mixture)
    _refuse_other_parts(task, wanted)
    for name, ending in task.endings.items():
        if name in endings.on:
            _refuse_other_options(name, ending, endings[name])
    task.lanes.set_shares({name: lane.share for name, lane in wanted.lanes.parts.items()})
    task.rewards.take_over(rewards, of_rewards)
    task.start.take_over(start)
    for name, reward in task.rewards.parts.items():
        _take_over(reward, rewards.parts[name])
    for name, ending in task.endings.items():
        _take_over(ending, endings[name])
    task.endings.set_counting(endings.counting, endings.of_lanes)


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
