"""What a bot must know of the task that its policy was trained in: settings as JSON, and tables as arrays."""
from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from wavedash.config import RocketConfig
from wavedash.errors import UserError
from wavedash.rocket.actions import Continuous, LookupTable, MultiDiscrete
from wavedash.rocket.actions.parser import Parser
from wavedash.rocket.observations import DefaultObs
from wavedash.rocket.observations.by_name import ObservationByName
from wavedash.rocket.parts import Action, Observation
from wavedash.rocket.rehearsal import empty_arenas
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task

Settings = dict[str, Any]
Arrays = dict[str, NDArray[Any]]
PARSERS: dict[type[Parser], str] = {LookupTable: "lookup_table", MultiDiscrete: "multi_discrete", Continuous: "continuous"}
ADVICE = ("A bot has code for advanced_obs_plus, default_obs, lists of their names (observation_by_name), lookup_table, "
          "multi_discrete and continuous. Export the network alone with `wavedash export RUN`, and write the bot around it")


def trained_parts(config: RocketConfig) -> tuple[Observation, Action, GameState]:
    """Observation and parser of a task, bound to an empty arena of its largest teams."""
    task = Task.configured(RocketConfig(observation=config.observation, action=config.action))
    state = empty_arenas(1, config)
    task.observation.bind(state)
    task.action.bind(state)
    return task.observation, task.action, state


def observation_settings(observation: Observation, seats: int) -> Settings:
    """The settings of the bot's observation. UserError: it has no code for this one."""
    if isinstance(observation, ObservationByName) and _inherits(observation, ObservationByName, "build", "begin", "bind"):
        if observation.more:
            raise UserError(f"the observation {_name(observation)} works out numbers itself, {', '.join(observation.more)}, "
                            f"for which a bot has no code. {ADVICE}")
        return {"kind": "by_name", "team_size": observation.team_size, "pads": observation.known.pads,
                "frames": observation.frames, "rows": observation.chosen.tolist()}
    if isinstance(observation, DefaultObs) and _inherits(observation, DefaultObs, "build", "begin", "_cars", "_jumps"):
        size = observation.zero_padding
        return {"kind": "default", "team_size": size, "seats": seats, "body_coefs": list(observation.body_coefs),
                "pad_timer_coef": observation.pad_timer_coef, "boost_coef": observation.boost_coef}
    raise UserError(f"the observation {_name(observation)} is code that a bot does not have. {ADVICE}")


def action_settings(action: Action) -> tuple[Settings, Arrays]:
    """Settings and tables of the bot's parser. UserError: it has no code for this one."""
    for kind, name in PARSERS.items():
        if isinstance(action, kind) and _inherits(action, kind, "parse", "controls", "mask", "begin", "bind"):
            settings = {"kind": name, "ticks": action.ticks, "delay": action.delay, "sticky": action.sticky,
                        "masked": getattr(action, "masked", False)}
            return settings, {f"action.{table}": getattr(action, table).numpy() for table in TABLES[name]}
    raise UserError(f"the action parser {_name(action)} is code that a bot does not have. {ADVICE}")


TABLES = {"lookup_table": ("table", "different"), "multi_discrete": ("source", "scale", "offset", "active", "jumps", "boosts"),
          "continuous": ()}
"""Tensors of each parser that its bot reads, by the same names"""


def _inherits(part: object, kind: type, *methods: str) -> bool:
    """Whether a part has these methods from `kind`, so that the bot's code does the same."""
    return all(getattr(type(part), method) is getattr(kind, method) for method in methods)


def _name(part: object) -> str:
    return f"{type(part).__module__}:{type(part).__name__}"
