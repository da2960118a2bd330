"""When a phase is over: the conditions of `until`, asked after every iteration."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isnan, nan
from typing import NamedTuple

from wavedash.config import UntilConfig
from wavedash.curriculum.state import PhaseState


class Condition(NamedTuple):
    """A metric that must be within limits."""

    told: str
    """The condition in the words of the configuration"""
    metrics: tuple[str, ...]
    """Names of the metric; the first one that was measured counts"""
    at_least: float | None = None
    at_most: float | None = None

    def measured(self, metrics: Mapping[str, float]) -> float | None:
        """Its value. None: nothing was measured, which listeners may also say by NaN (null in metrics.jsonl)."""
        return next((metrics[name] for name in self.metrics if not isnan(metrics.get(name, nan))), None)

    def holds(self, value: float) -> bool:
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)


def conditions(until: UntilConfig) -> list[Condition]:
    """All conditions of `until` but `steps`."""
    return list(_conditions(until))


def _conditions(until: UntilConfig) -> Iterator[Condition]:
    if until.rating is not None:
        yield Condition(f"rating {until.rating:g}", ("rating/elo",), until.rating)
    for player, share in until.win_rate.items():
        names = (f"rating/win_rate_{player}", f"league/win_rate_{player}")
        yield Condition(f"win rate {share:g} against {player}", names, share)
    for what, share in until.success.items():
        lane, _, measure = what.rpartition("/")
        name = f"lane/{lane}/attempt/{measure}" if lane else f"env/attempt/{measure}"
        yield Condition(f"success {share:g} of {what}", (name,), share)
    for metric, limit in until.metrics.items():
        words = [f"{word} {x:g}" for word, x in (("at least", limit.at_least), ("at most", limit.at_most)) if x is not None]
        yield Condition(f"{metric} {' and '.join(words)}", (metric,), limit.at_least, limit.at_most)


def after_iteration(until: UntilConfig, state: PhaseState, steps: int, metrics: Mapping[str, float]) -> PhaseState:
    """The state after one more iteration in this phase, which ended at `steps` with these metrics.

    An iteration that measured none of the metrics counts neither way. Where only some are measured, such as a rating now and
    then, the last values of the others count.
    """
    asked = conditions(until)
    long_enough = until.steps is not None and steps - state.began[state.number] >= until.steps
    now = {condition.told: value for condition in asked if (value := condition.measured(metrics)) is not None}
    if asked and not now and not (long_enough and until.need == "any"):
        return state
    known = {**state.known, **now}
    held = [condition.told in known and condition.holds(known[condition.told]) for condition in asked]
    held += [] if until.steps is None else [long_enough]
    over = all(held) if until.need == "all" else any(held)
    return state.model_copy(update={"known": known, "held": state.held + 1 if over else 0})


def described(until: UntilConfig, state: PhaseState, steps: int) -> str:
    """How far the conditions are, for people: `rating 1100 (1043), steps 5,000,000 (1,234,567)`."""
    told = [f"{condition.told} ({state.known[condition.told]:.3g})" if condition.told in state.known else
            f"{condition.told} (not measured yet)" for condition in conditions(until)]
    if until.steps is not None:
        told.append(f"steps {until.steps:,} ({steps - state.began[state.number]:,})")
    return f" {'and' if until.need == 'all' else 'or'} ".join(told)
