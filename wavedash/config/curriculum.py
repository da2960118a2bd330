"""Options of phases: an ordered list of changes to the settings of a run, and when to move on."""
from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import field_validator, model_validator

from wavedash.config.section import Fraction, Positive, Section


class LimitConfig(Section):
    """A limit of a metric."""

    at_least: float | None = None
    """The condition holds where the metric is this or more."""
    at_most: float | None = None
    """The condition holds where the metric is this or less."""

    @model_validator(mode="after")
    def _says_something(self) -> LimitConfig:
        if self.at_least is None and self.at_most is None:
            raise ValueError("a limit of a metric needs at_least, at_most or both: {at_least: 0.6}")
        return self


class UntilConfig(Section):
    """When a phase is over. Each option is a condition; what is not set does not count."""

    steps: Positive | None = None
    """Steps since the phase began."""
    rating: float | None = None
    """The rating of the policy (see `rating`), this or more. Higher: later."""
    win_rate: dict[str, Fraction] = {}
    """By player of the panel or member of the league, such as `chaser` or `newest`: the share of points against it, this or
    more. Higher: later."""
    success: dict[str, Fraction] = {}
    """By measure, such as `turtle`, or `lane/measure`, such as `mechanics/wall`: the share of attempts that succeed, this or
    more. Higher: later."""
    metrics: dict[str, LimitConfig] = {}
    """By metric, as in metrics.jsonl: `{env/per_minute/touches: {at_least: 8}}`."""
    need: Literal["all", "any"] = "all"
    """all: every condition must hold at the same time; any: one is enough."""
    iterations: Positive = 1
    """Iterations in a row in which it must hold. An iteration that does not measure it counts neither way; `steps` is always
    known. More: luck counts less."""

    @model_validator(mode="after")
    def _some_condition(self) -> UntilConfig:
        if self.steps is None and self.rating is None and not (self.win_rate or self.success or self.metrics):
            raise ValueError("until needs a condition: steps, rating, win_rate, success or metrics")
        return self


class PhaseConfig(Section):
    """One phase of a run."""

    name: str
    """What it is called in logs, curves and the folders of milestones. Up to 60 letters, digits, spaces and - _ + . inside."""
    set: dict[str, Any] = {}
    """What it changes, on top of the phases before it: settings of env, ppo, opponents and rating by key
    (`ppo.learning_rate: 1e-4`, `env.rocket.rewards: {goal: 10, touch: 1}`); a name that has dots itself stands in quotes
    (`env.rocket.rewards.'my.rewards:Speedy': 2`). A number may be a ramp, `{from: 0, to: 1, over: 5_000_000}`: it moves evenly
    over so many steps from the beginning of the phase, and goes on in later phases that do not set it."""
    until: UntilConfig | None = None
    """When the run moves on to the next phase; by hand only when not set."""

    @field_validator("name")
    @classmethod
    def _names_a_folder(cls, name: str) -> str:
        if len(name) > 60 or re.fullmatch(r"[A-Za-z0-9]([\w .+-]*[\w+-])?", name) is None:
            raise ValueError(f"a phase cannot be named {name!r}, because its milestones lie in a folder of this name: use up "
                             "to 60 letters, digits, spaces and - _ + . of which the first is a letter or digit, and the "
                             "last no space or .")
        return name
