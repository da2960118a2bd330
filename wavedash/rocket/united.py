"""A Rocket League task together with the parts of other tasks, which are switched off (tasks/united.py)."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from wavedash.config import LaneConfig, Named, RocketConfig
from wavedash.errors import UserError
from wavedash.tasks.united import first, united_endings, united_weights


def united(config: RocketConfig, others: Sequence[RocketConfig]) -> RocketConfig:
    """The task `config` with the rewards, starts, endings, lanes and measures of `others` added. Rewards and starts are added
    with weight 0, endings as null, lanes with share 0; these, and measures, are as in the first of `others` that has them. An
    ending that is null keeps no options. Every lane has room for the largest share of all tasks. Measures have no switch: those
    of all tasks are measured.

    Parts are in the order in which they first appear in `others`. If these are the tasks of all phases, the order, and with it
    the names of what is saved and the random streams of starts, is the same in all phases."""
    tasks = [*others, config]
    return config.model_copy(update={
        "rewards": united_weights(config.rewards, [task.rewards for task in tasks]),
        "starts": united_weights(config.starts, [task.starts for task in tasks]),
        "endings": united_endings(config.endings, [task.endings for task in tasks]),
        "lanes": _lanes(config.lanes, [task.lanes for task in tasks]),
        "measures": _measures(config.measures, [task.measures for task in tasks]),
    })


def _lanes(own: Mapping[str, LaneConfig], all_of: Sequence[Mapping[str, LaneConfig]]) -> dict[str, LaneConfig]:
    lanes: dict[str, LaneConfig] = {}
    for name, as_first in first(all_of).items():
        same = [task[name] for task in all_of if name in task]
        lane = own.get(name) or as_first.model_copy(update={"share": 0.0})
        rewards = [each.rewards for each in same if each.rewards is not None]
        endings = [each.endings for each in same if each.endings is not None]
        lanes[name] = lane.model_copy(update={
            "most": max(each.room for each in same),
            "starts": united_weights(lane.starts, [each.starts for each in same]),
            "rewards": None if lane.rewards is None else united_weights(lane.rewards, rewards),
            "endings": None if lane.endings is None else united_endings(lane.endings, endings),
            "measures": _measures(lane.measures, [each.measures for each in same]),
        })
    _refuse_too_many(lanes)
    return lanes


def _refuse_too_many(lanes: Mapping[str, LaneConfig]) -> None:
    rooms = {name: lane.room for name, lane in lanes.items()}
    if (whole := sum(rooms.values())) > 1.0 + 1e-9:
        each = ", ".join(f"{name} ({room:.0%})" for name, room in rooms.items())
        raise UserError(f"a run sets aside arenas for the lanes of all its phases from the beginning: {each} need {whole:.0%} "
                        "of the arenas together. Lower their `most` or `share`, or give lanes of different phases one name")


def _measures(own: Sequence[Named], all_of: Sequence[Sequence[Named]]) -> list[Named]:
    by_name = {_name(named): named for named in own}
    return [by_name.get(name, named) for name, named in first([{_name(x): x for x in named} for named in all_of]).items()]


def _name(named: Named) -> str:
    return named if isinstance(named, str) else ", ".join(named)
