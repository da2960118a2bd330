"""Measures: all measures of a task, and the metrics that their outcomes become."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from wavedash.config import Named
from wavedash.envs.errors import EnvError
from wavedash.rocket import names
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.parts import Measure, Part
from wavedash.rocket.state import Events, GameState
from wavedash.tasks.part import Parts
from wavedash.tasks.rewards import label

SUCCESS = "attempt/{}"
TICKS = "attempt/{}_ticks"
PER_MINUTE = "per_minute/{}_attempts"


class Measures(Part):
    """Measures by name. For each there are metrics of every car: the share of its attempts that succeeded, the ticks that a
    success took where the measure is timed, and how many attempts there were per minute.

    An attempt counts in the step that decides it. Where no attempt was decided, its metrics are NaN and count for nothing: the
    rate of an iteration without attempts is absent, not 0. An attempt that is still open when its episode ends counts for
    nothing either.
    """

    holds_parts = True

    def __init__(self, measures: Mapping[str, Measure] | None = None) -> None:
        self.parts = Parts(measures or {})

    @classmethod
    def named(cls, given: Sequence[Named]) -> Measures:
        """Makes measures as a YAML file has them: `[turtle, {dribble: {seconds: 3}}, my_module:MyMeasure]`."""
        measures: dict[str, Measure] = {}
        for named in given:
            if not isinstance(named, str) and len(named) != 1:
                raise EnvError(f"env.rocket.measures: each entry is one measure, a name or {{name: options}}, not {named}")
            ((name, options),) = {named: {}}.items() if isinstance(named, str) else named.items()
            if label(name) in measures:
                raise EnvError(f"env.rocket.measures has {label(name)!r} twice: each may be there once")
            measures[label(name)] = names.make("measure", name, options)
        return cls(measures)

    def __len__(self) -> int:
        return len(self.parts)

    def bind(self, state: GameState) -> None:
        for measure in self.parts.values():
            measure.bind(state)

    def begin(self, state: GameState, arenas: Tensor) -> None:
        for measure in self.parts.values():
            measure.begin(state, arenas)

    def shown(self) -> dict[str, str]:
        """The metrics that people look at, each with what it is called on the screen."""
        found: dict[str, str] = {}
        for name, measure in self.parts.items():
            title = name.replace("_", " ")
            found[SUCCESS.format(name)] = title
            if measure.timed:
                found[TICKS.format(name)] = f"{title} ticks"
        return found

    def __call__(self, state: GameState, previous: GameState, events: Events, ticks: int) -> dict[str, Tensor]:
        """The metrics of a step of so many `ticks`, [E * C] each."""
        if not len(self.parts):
            return {}
        outcomes = {name: measure(state, previous, events) for name, measure in self.parts.items()}
        over = torch.stack([outcome.over for outcome in outcomes.values()]).flatten(1)  # [M, E * C]
        success = torch.stack([outcome.success for outcome in outcomes.values()]).flatten(1)
        rates = torch.where(over, success.float(), torch.nan).unbind(0)
        attempts = (over * (60 * TICK_RATE / ticks)).unbind(0)
        metrics: dict[str, Tensor] = {}
        for index, (name, outcome) in enumerate(outcomes.items()):
            metrics[SUCCESS.format(name)] = rates[index]
            metrics[PER_MINUTE.format(name)] = attempts[index]
            if outcome.ticks is not None:
                metrics[TICKS.format(name)] = torch.where(success[index], outcome.ticks.flatten().float(), torch.nan)
        return metrics
