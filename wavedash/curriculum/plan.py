"""The settings of a run with phases at any moment: a function of its configuration, its phase and its steps.

Phases build on each other: the settings in phase k are those of the configuration, then what phase 1 sets, and so on up to k,
each key in this order. A ramp runs from the beginning of its phase, and goes on in later phases that do not set it.

Parts of the environment that only some phases have (rewards, starts, endings, lanes, opponents) are there in all of them,
switched off. So a phase that needs a part finds it made, bound and captured in the CUDA graphs.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from wavedash.config import OpponentsConfig, PhaseConfig, RunConfig
from wavedash.config_file import ConfigError, changed_config, is_section
from wavedash.curriculum.ramp import check_ramp, is_ramp, ramps_by_key, ramps_in, value_at
from wavedash.curriculum.state import PhaseState, saved_phase
from wavedash.envs.kinds import kind_of
from wavedash.errors import UserError
from wavedash.yaml_text import Key

NEVER = 2**62
"""Steps after which all ramps are at their end"""
IN_PHASES = ("env", "ppo", "opponents", "rating")
"""The sections that phases may set. Of everything else (networks, total steps, checkpoints, reports) a run has one."""
BETWEEN, QUOTED = re.compile(r"\.(?=(?:[^']*'[^']*')*[^']*$)"), re.compile("'[^']+'")
"""The dots between the names of a key, and a name in quotes, whose own dots are none of them"""
WORDS = ("next", "back")
"""Words that order a move, which no phase may be named"""


class Plan:
    """The phases of one configuration."""

    def __init__(self, config: RunConfig) -> None:
        """ConfigError: a phase sets what does not exist or cannot be."""
        self.config = config
        self.names = [phase.name for phase in config.phases]
        spelt = [name.lower() for name in self.names]
        if twice := [name for name in self.names if spelt.count(name.lower()) > 1]:
            raise ConfigError(f"two phases are named {twice[0]!r}, in capitals or not: give each a name of its own")
        if words := [name for name in self.names if name.lower() in WORDS or name.isdecimal()]:
            raise ConfigError(f"a phase cannot be named {words[0]!r}, which orders a move: choose another name")
        if config.phases and config.phases[-1].until is not None:
            raise ConfigError(f"phases: the last one, {self.names[-1]!r}, has `until`, but nothing comes after it: leave it "
                              "out; total_steps ends the run")
        self._sets = [dict(_flat(phase)) for phase in config.phases]

    @property
    def phases(self) -> list[PhaseConfig]:
        return self.config.phases

    @property
    def sets(self) -> list[dict[str, Any]]:
        """Returns what each phase sets, by keys with dots."""
        return [_written(values) for values in self._sets]

    def settings(self, state: PhaseState, steps: int) -> RunConfig:
        """Returns what counts in this phase after so many steps of the run. It is a configuration without phases."""
        return self.config if not self.phases else self._complete(self._layered(state, steps))

    def ramps(self, state: PhaseState) -> dict[Key, Mapping[str, Any]]:
        """The ramps of this phase by key, with those of earlier phases that go on in it."""
        return {at: ramp for key, (_, value) in self._items(state).items() for at, ramp in ramps_by_key(value, key)}

    def moves(self, state: PhaseState, steps: int) -> bool:
        """Whether the settings still move by themselves after so many steps: a ramp has not reached its end."""
        return any(steps - began <= ramp["over"] for began, value in self._items(state).values() for ramp in ramps_in(value))

    def with_values(self, state: PhaseState, values: Mapping[Key, Any]) -> RunConfig:
        """The configuration of a run whose user has changed settings in this phase. What phases may set is a setting of this
        phase from now on, so that it counts until a later phase sets the same key; everything else is one of the whole run."""
        of_phase = {key: value for key, value in values.items() if self.phases and key[0] in IN_PHASES}
        config = changed_config(self.config, {key: value for key, value in values.items() if key not in of_phase})
        if not of_phase:
            return config
        own = dict(self._sets[state.number])
        layered, united = (settings.model_dump() for settings in (self._layered(state, NEVER), self.settings(state, NEVER)))
        for key, value in of_phase.items():
            united = _with(united, key, value)  # several values may be of the same part
            at, recorded = _recordable(key, value, layered, united)
            own.pop(at, None)  # and again at the end: it counts over a mapping around it
            own[at] = recorded
        phase = self.phases[state.number].model_copy(update={"set": _written(own)})
        phases = [phase if index == state.number else other for index, other in enumerate(self.phases)]
        return config.model_copy(update={"phases": phases})

    def check(self) -> None:
        """Raises ConfigError or UserError if the settings of a phase cannot be, at the beginning or at the end of a ramp."""
        for number in range(len(self.phases)):
            state = PhaseState().moved(number, 0)
            ends = [ramp["over"] for values in self._sets for value in values.values() for ramp in ramps_in(value)]
            # In between at a share at which a ramp of whole numbers is hardly ever at one.
            for steps in sorted({0, *ends, *(round(0.6180339887 * end) for end in ends)}):
                self.settings(state, int(steps))

    def stages(self) -> list[RunConfig]:
        """The settings at the beginning of each phase; of a run without phases, its settings."""
        numbers = range(max(1, len(self.phases)))
        return [self.settings(PhaseState().moved(number, 0), 0) for number in numbers]

    def set_by(self, key: Key) -> list[str]:
        """The names of the phases that set this key, or something inside or around it."""
        return [name for name, values in zip(self.names, self._sets, strict=True)
                if any(other[:len(key)] == key[:len(other)] for other in values)]

    def number_of(self, asked: str, now: int) -> int:
        """The phase that a user means: `next`, `back`, its number from 1, or its name. UserError: there is none."""
        words = dict(zip(WORDS, (now + 1, now - 1), strict=True))
        words |= {str(index + 1): index for index in range(len(self.phases))}
        words |= {phase.name.lower(): index for index, phase in enumerate(self.phases)}
        number = words.get(asked.lower(), -1)
        if not 0 <= number < len(self.phases):
            names = ", ".join(f"{index} {phase.name}" for index, phase in enumerate(self.phases, 1))
            raise UserError(f"there is no phase {asked!r} to go to from phase {now + 1}; the phases are: {names}; "
                            "next and back move by one")
        return number

    # --- how settings are put together ----------------------------------------------------------------------------------

    def _layered(self, state: PhaseState, steps: int) -> RunConfig:
        """Returns what the phases up to this one have set, with ramps as they are now."""
        items = {key: value_at(value, steps - began) for key, (began, value) in self._items(state).items()}
        try:
            return changed_config(self.config.model_copy(update={"phases": []}), items)
        except ConfigError as error:
            raise ConfigError(f"phase {self.phases[state.number].name!r}: {error}") from None

    def _items(self, state: PhaseState) -> dict[Key, tuple[int, Any]]:
        """Yields what the phases up to this one have set, in this order, with the steps at which each of them began. What is
        set later counts over everything before, at the same key and inside of it."""
        items: dict[Key, tuple[int, Any]] = {}
        for began, values in zip(state.began, self._sets, strict=False):
            for key, value in values.items():
                items = {other: item for other, item in items.items() if other[:len(key)] != key}
                items[key] = began, value
        return items

    def _complete(self, config: RunConfig) -> RunConfig:
        """The settings with all parts of all phases, those of other phases switched off."""
        env = kind_of(config.env).united(config.env, [other.env for other in self.all_settings])
        return config.model_copy(update={"env": env, "opponents": self._with_room(config.opponents)})

    @cached_property
    def all_settings(self) -> list[RunConfig]:
        """The settings of every phase, with ramps at both of their ends."""
        ends = (0, NEVER)
        return [self._layered(PhaseState().moved(number, 0), steps) for number in range(len(self.phases)) for steps in ends]

    def _with_room(self, opponents: OpponentsConfig | None) -> OpponentsConfig | None:
        """Opponents with room for the largest share that they have in any phase; without any, if this phase has none."""
        ever = [config.opponents for config in self.all_settings if config.opponents is not None]
        if not ever:
            return opponents
        most = max(other.room for other in ever)
        return (opponents or ever[0].model_copy(update={"share": 0.0})).model_copy(update={"most": most})


def counting(config: RunConfig, values: Mapping[Key, Any], state: Mapping[str, Any]) -> RunConfig:
    """A configuration in which values that a command asks for count also where phases set them. `state`: the plain values of
    the checkpoint from which the run goes on."""
    plan, alone = Plan(config), only_in_phases(config, values)
    asked = {key: value for key, value in values.items() if key[0] in IN_PHASES and (plan.set_by(key) or key in alone)}
    return plan.with_values(saved_phase(state).among(plan.names), asked) if asked else config


def only_in_phases(config: RunConfig, keys: Iterable[Key]) -> list[Key]:
    """Returns those of the keys that lead into a part which the run has in some of its phases alone, such as a lane: the
    settings of the whole run have no place for them."""
    whole, *phases = (settings.model_dump() for settings in (config, *Plan(config).all_settings))
    return [key for key in keys if key[0] in IN_PHASES and _inside(whole, key[:-1]) is None
            and any(_inside(phase, key[:-1]) is not None for phase in phases)]


def _inside(mapping: Any, key: Key) -> Any:
    """Returns what a key leads to in nested mappings; None: nothing."""
    for name in key:
        mapping = mapping.get(name) if isinstance(mapping, Mapping) else None
    return mapping


def _recordable(key: Key, value: Any, layered: Mapping[str, Any], united: Mapping[str, Any]) -> tuple[Key, Any]:
    """The key and the value by which a change is recorded in a phase. Where a part is there only because another phase has it,
    such as a reward with weight 0, it is recorded whole, with its options."""
    inside: Any = layered
    for depth, name in enumerate(key[:-1]):
        if isinstance(inside, Mapping) and inside.get(name) is None:
            at = key[:depth + 1]
            whole = _inside(united, at)
            return (key, value) if whole is None else (at, _with(whole, key[len(at):], value))
        inside = inside.get(name) if isinstance(inside, Mapping) else None
    return key, value


def _with(mapping: Mapping[str, Any], key: Key, value: Any) -> dict[str, Any]:
    """A copy of nested mappings with another value at a key."""
    name, rest = str(key[0]), key[1:]
    inside = mapping.get(name)
    return {**mapping, name: _with(inside if isinstance(inside, Mapping) else {}, rest, value) if rest else value}


def _written(values: Mapping[Key, Any]) -> dict[str, Any]:
    """Returns what a phase sets, by keys with dots. A name that has dots itself, such as an import path, stands in quotes."""
    return {".".join(f"'{name}'" if "." in str(name) else str(name) for name in key): value for key, value in values.items()}


def _flat(phase: PhaseConfig) -> Iterator[tuple[Key, Any]]:
    """Yields what a phase sets by key. Sections may be nested or dotted; a mapping, such as rewards, is one value."""
    for name, value in phase.set.items():
        key = tuple(part[1:-1] if QUOTED.fullmatch(part) else part for part in BETWEEN.split(name))
        yield from _flat_at(key, value, phase.name)


def _flat_at(key: Key, value: Any, phase: str) -> Iterator[tuple[Key, Any]]:
    if key[0] not in IN_PHASES:
        raise ConfigError(f"phase {phase!r} sets {'.'.join(map(str, key))}: phases may set what is in {', '.join(IN_PHASES)}; "
                          "everything else is for the whole run")
    if isinstance(value, Mapping) and value and is_section(key) and not is_ramp(value):
        for name, item in value.items():
            yield from _flat_at((*key, name), item, phase)
        return
    for ramp in ramps_in(value):
        try:
            check_ramp(ramp)
        except UserError as error:
            raise ConfigError(f"phase {phase!r}: {'.'.join(map(str, key))}: {error}") from None
    yield key, value
