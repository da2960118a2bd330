"""The settings of a run with phases at any moment: a function of its configuration, its phase and its steps.

Phases build on each other: the settings in phase k are those of the configuration, then what phase 1 sets, and so on up to k,
each key in this order. A ramp runs from the beginning of its phase, and goes on in later phases that do not set it.

Parts of the environment that only some phases have (rewards, starts, endings, lanes, opponents) are there in all of them,
switched off. So a phase that needs a part finds it made, bound and captured in the CUDA graphs.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from wavedash.config import OpponentsConfig, PhaseConfig, RunConfig
from wavedash.config_file import ConfigError, changed_config, is_section
from wavedash.curriculum.ramp import check_ramp, is_ramp, ramps_in, value_at
from wavedash.curriculum.state import PhaseState
from wavedash.envs.kinds import kind_of
from wavedash.errors import UserError
from wavedash.yaml_text import Key

NOT_IN_PHASES = ("name", "seed", "init", "phases", "device")
"""Settings that a phase cannot change: a run has one of each"""


class Plan:
    """The phases of one configuration."""

    def __init__(self, config: RunConfig) -> None:
        """ConfigError: a phase sets what does not exist or cannot be."""
        self.config = config
        names = [phase.name for phase in config.phases]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigError(f"two phases are named {twice[0]!r}: give each a name of its own")
        if config.phases and config.phases[-1].until is not None:
            raise ConfigError(f"phases: the last one, {names[-1]!r}, has `until`, but nothing comes after it: leave it out; "
                              "total_steps ends the run")
        self._sets = [dict(_flat(phase)) for phase in config.phases]
        for phase in config.phases:
            self._refuse_unmeasured(phase)

    @property
    def phases(self) -> list[PhaseConfig]:
        return self.config.phases

    def settings(self, state: PhaseState, steps: int) -> RunConfig:
        """What counts in this phase after so many steps of the run. It is a configuration without phases."""
        return self.config if not self.phases else self._complete(self._layered(state, steps))

    def moves(self, state: PhaseState, steps: int) -> bool:
        """Whether the settings still move by themselves after so many steps: a ramp has not reached its end."""
        return any(steps - began <= ramp["over"] for began, values in zip(state.began, self._sets, strict=False)
                   for value in values.values() for ramp in ramps_in(value))

    def with_values(self, state: PhaseState, values: Mapping[Key, Any]) -> RunConfig:
        """The configuration of a run whose user has changed settings in this phase. In a run with phases they are settings of
        this phase from now on, so that they count until a later phase sets the same key."""
        if not self.phases:
            return changed_config(self.config, values)
        own = {".".join(map(str, key)): value for key, value in self._sets[state.number].items()}
        for key, value in values.items():
            name = ".".join(map(str, key))
            own.pop(name, None)  # and again at the end: it counts over a mapping around it
            own[name] = value
        phase = self.phases[state.number].model_copy(update={"set": own})
        phases = [phase if index == state.number else other for index, other in enumerate(self.phases)]
        return self.config.model_copy(update={"phases": phases})

    def check(self) -> None:
        """Raises ConfigError or UserError if the settings of a phase cannot be, at the beginning or at the end of a ramp."""
        for number in range(len(self.phases)):
            state = PhaseState().moved(number, 0)
            ends = [ramp["over"] for values in self._sets for value in values.values() for ramp in ramps_in(value)]
            for steps in sorted({0, *ends, *(end // 3 for end in ends)}):
                self.settings(state, int(steps))

    def stages(self) -> list[RunConfig]:
        """The settings at the beginning of each phase; of a run without phases, its settings."""
        numbers = range(max(1, len(self.phases)))
        return [self.settings(PhaseState().moved(number, 0), 0) for number in numbers]

    def set_by(self, key: Key) -> list[str]:
        """The names of the phases that set this key, or something inside or around it."""
        return [phase.name for phase, values in zip(self.phases, self._sets, strict=True)
                if any(other[:len(key)] == key[:len(other)] for other in values)]

    def number_of(self, asked: str, now: int) -> int:
        """The phase that a user means: `next`, `back`, its number from 1, or its name. UserError: there is none."""
        words = {"next": now + 1, "back": now - 1}
        words |= {str(index + 1): index for index in range(len(self.phases))}
        words |= {phase.name.lower(): index for index, phase in enumerate(self.phases)}
        number = words.get(asked.lower(), -1)
        if not 0 <= number < len(self.phases):
            names = ", ".join(f"{index} {phase.name}" for index, phase in enumerate(self.phases, 1))
            raise UserError(f"there is no phase {asked!r} to go to from phase {now + 1}; the phases are: {names}; "
                            "next and back move by one")
        return number

    def _refuse_unmeasured(self, phase: PhaseConfig) -> None:
        """Raises ConfigError if a phase waits for what this run does not measure."""
        rated = self.config.rating is not None or any(key[0] == "rating" for values in self._sets for key in values)
        played = self.config.opponents is not None or any(key[0] == "opponents" for values in self._sets for key in values)
        if phase.until is not None and phase.until.rating is not None and not rated:
            raise ConfigError(f"phase {phase.name!r} waits for a rating, but this run is not rated: add `rating: {{}}`")
        if phase.until is not None and phase.until.win_rate and not (rated or played):
            raise ConfigError(f"phase {phase.name!r} waits for a win rate against {next(iter(phase.until.win_rate))}, but this "
                              "run plays against nobody: add `rating: {}`")

    # --- how settings are put together ----------------------------------------------------------------------------------

    def _layered(self, state: PhaseState, steps: int) -> RunConfig:
        """What the phases up to this one have set, with ramps as they are now."""
        items: dict[Key, Any] = {}
        for began, values in zip(state.began, self._sets, strict=False):
            for key, value in values.items():
                items.pop(key, None)  # what is set later counts over everything before
                items[key] = value_at(value, steps - began)
        try:
            return changed_config(self.config.model_copy(update={"phases": []}), items)
        except ConfigError as error:
            raise ConfigError(f"phase {self.phases[state.number].name!r}: {error}") from None

    def _complete(self, config: RunConfig) -> RunConfig:
        """The settings with all parts of all phases, those of other phases switched off."""
        env = kind_of(config.env).united(config.env, [other.env for other in self._all])
        return config.model_copy(update={"env": env, "opponents": self._with_room(config.opponents)})

    @cached_property
    def _all(self) -> list[RunConfig]:
        """The settings of every phase, with ramps at both of their ends."""
        ends = (0, 2**62)
        return [self._layered(PhaseState().moved(number, 0), steps) for number in range(len(self.phases)) for steps in ends]

    def _with_room(self, opponents: OpponentsConfig | None) -> OpponentsConfig | None:
        """Opponents with room for the largest share that they have in any phase; without any, if this phase has none."""
        ever = [config.opponents for config in self._all if config.opponents is not None]
        if not ever:
            return opponents
        most = max(other.room for other in ever)
        return (opponents or ever[0].model_copy(update={"share": 0.0})).model_copy(update={"most": most})


def _flat(phase: PhaseConfig) -> Iterator[tuple[Key, Any]]:
    """Yields what a phase sets by key. Sections may be nested or dotted; a mapping, such as rewards, is one value."""
    for name, value in phase.set.items():
        yield from _flat_at(tuple(name.split(".")), value, phase.name)


def _flat_at(key: Key, value: Any, phase: str) -> Iterator[tuple[Key, Any]]:
    if key[0] in NOT_IN_PHASES:
        raise ConfigError(f"phase {phase!r} sets {key[0]}, which cannot change in a run")
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
