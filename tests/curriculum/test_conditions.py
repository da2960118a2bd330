"""When a phase is over."""
from __future__ import annotations

from collections.abc import Mapping
from math import nan

import pytest

from wavedash.config import UntilConfig
from wavedash.curriculum.conditions import after_iteration, described
from wavedash.curriculum.state import PhaseState


def held(until: UntilConfig, *iterations: Mapping[str, float], steps: int = 10) -> list[int]:
    """For how many iterations in a row the conditions held, after each of these; every one has so many steps."""
    state, found = PhaseState(), []
    for index, metrics in enumerate(iterations, 1):
        state = after_iteration(until, state, index * steps, metrics)
        found.append(state.held)
    return found


def test_steps_count_from_the_beginning_of_the_phase():
    until = UntilConfig(steps=25)
    assert held(until, {}, {}, {}, {}) == [0, 0, 1, 2]
    late = PhaseState(number=1, began=[0, 100])
    assert [after_iteration(until, late, steps, {}).held for steps in (110, 124, 125)] == [0, 0, 1]


@pytest.mark.parametrize(("until", "metric"), [
    (UntilConfig(rating=0.6), "rating/elo"),
    (UntilConfig(win_rate={"chaser": 0.6}), "rating/win_rate_chaser"),
    (UntilConfig(win_rate={"newest": 0.6}), "league/win_rate_newest"),
    (UntilConfig(success={"turtle": 0.6}), "env/attempt/turtle"),
    (UntilConfig(success={"mechanics/wall": 0.6}), "lane/mechanics/attempt/wall"),
    (UntilConfig.model_validate({"metrics": {"env/x": {"at_least": 0.6}}}), "env/x"),
])
def test_every_kind_of_condition_asks_its_metric_and_no_other(until, metric):
    assert held(until, {metric: 0.59}, {metric: 0.6}, {metric: 0.7}, {"other/" + metric: 0.7}, {metric: 0.5}) == [0, 1, 2, 2, 0]


def test_a_metric_that_is_nan_was_not_measured():
    """As in an iteration without it: it neither ends a series nor replaces the last value."""
    until = UntilConfig.model_validate({"metrics": {"own/skill": {"at_least": 1}, "own/other": {"at_least": 1}}})
    for nothing in ({"own/skill": nan, "own/other": 2.0}, {"own/other": 2.0}):
        assert held(until, {"own/skill": 2.0, "own/other": 2.0}, nothing, {"own/skill": 0.0}) == [1, 2, 0]
    assert held(until, {"own/skill": 2.0, "own/other": 2.0}, {"own/skill": nan, "own/other": nan}) == [1, 1]


def test_limits_from_both_sides():
    until = UntilConfig.model_validate({"metrics": {"policy/kl": {"at_least": 1, "at_most": 2}}})
    assert held(until, *({"policy/kl": x} for x in (0.9, 1.0, 2.0, 2.1))) == [0, 1, 2, 0]


def test_all_must_hold_at_the_same_time_and_the_last_value_of_a_rare_metric_counts():
    until = UntilConfig(rating=1000, success={"turtle": 0.5})
    rated, often = {"rating/elo": 1100.0}, "env/attempt/turtle"
    assert held(until, {often: 0.9}, {often: 0.9, **rated}, {often: 0.4}, {often: 0.6}, {}) == [0, 1, 0, 1, 1]


def test_one_of_several_is_enough_if_any_may_hold():
    until = UntilConfig(steps=35, rating=1000, need="any")
    assert held(until, {}, {"rating/elo": 900.0}, {}, {}) == [0, 0, 0, 1]
    assert held(until, {}, {"rating/elo": 1000.0}, {}) == [0, 1, 1]


def test_progress_is_told_in_words():
    until = UntilConfig(steps=2000, rating=1000)
    state = after_iteration(until, PhaseState(), 500, {"rating/elo": 940.2})
    assert described(until, state, 500) == "rating 1000 (940) and steps 2,000 (500)"
