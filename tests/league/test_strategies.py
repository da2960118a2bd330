"""Strategies: their formulas, what temperature does, and properties that hold for all of them."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavedash.config import OpponentsConfig
from wavedash.errors import UserError
from wavedash.league.strategies import (
    Known,
    NearRating,
    Pfsp,
    Recent,
    Strategy,
    TargetWinRate,
    Uniform,
    drawn,
    strategy_of,
)

ALL: list[Strategy] = [Uniform(), Recent(), NearRating(), TargetWinRate(), Pfsp(), Pfsp(power=2.0)]
MEMBERS = [Known(100, 900.0, 0.9), Known(200, 1100.0, 0.6), Known(300, 1300.0, 0.2)]
a_member = st.builds(Known, st.integers(0, 10**10), st.floats(-2000, 5000), st.floats(0, 1))


@given(st.lists(a_member, min_size=1, max_size=20), st.floats(-2000, 5000), st.floats(0.05, 20))
@pytest.mark.parametrize("strategy", ALL, ids=lambda x: type(x).__name__)
def test_weights_are_a_distribution_whatever_is_known(strategy, members, own_rating, temperature):
    strategy.temperature = temperature
    weights = strategy.weights(members, own_rating)
    assert weights.shape == (len(members),) and np.isfinite(weights).all() and (weights >= 0).all()
    assert weights.sum() == pytest.approx(1.0)


@given(st.permutations(range(3)))
@pytest.mark.parametrize("strategy", ALL, ids=lambda x: type(x).__name__)
def test_the_order_of_members_does_not_matter(strategy, order):
    strategy.temperature = 1.0
    weights, shuffled = strategy.weights(MEMBERS, 1000.0), strategy.weights([MEMBERS[i] for i in order], 1000.0)
    np.testing.assert_allclose(shuffled, weights[list(order)])


@pytest.mark.parametrize(("strategy", "preference"), [
    (Uniform(), [1, 1, 1]),
    (Recent(decay=0.5), [0.25, 0.5, 1]),
    (NearRating(window=200), [np.exp(-0.125), np.exp(-0.125), np.exp(-1.125)]),
    (TargetWinRate(target=0.6, width=0.2), [np.exp(-1.125), 1, np.exp(-2)]),
    (Pfsp(), [0.09, 0.24, 0.16]),
    (Pfsp(power=2), [0.01, 0.16, 0.64]),
    (Pfsp(power=0), [1, 1, 1]),
], ids=lambda x: type(x).__name__)
def test_each_is_its_formula(strategy, preference):
    expected = np.array(preference) / np.sum(preference)
    np.testing.assert_allclose(strategy.weights(MEMBERS, 1000.0), expected)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_temperature_is_an_exponent(temperature):
    cold, warm = Pfsp(temperature=temperature), Pfsp()
    ratio = warm.weights(MEMBERS, 0.0)[1] / warm.weights(MEMBERS, 0.0)[2]
    weights = cold.weights(MEMBERS, 0.0)
    assert weights[1] / weights[2] == pytest.approx(ratio ** (1 / temperature))


def test_who_beats_everybody_plays_everybody():
    beaten = [member._replace(win_rate=1.0) for member in MEMBERS]
    np.testing.assert_allclose(Pfsp().weights(beaten, 0.0), 1 / 3)


@pytest.mark.parametrize("wrong", [
    lambda: Uniform(temperature=0.0), lambda: Recent(decay=0.0), lambda: NearRating(window=0.0),
    lambda: TargetWinRate(target=1.5), lambda: TargetWinRate(width=0.0), lambda: Pfsp(power=-1.0),
])
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(UserError):
        wrong()


@pytest.mark.parametrize(("options", "expected"), [
    ({"strategy": "uniform"}, Uniform()),
    ({"strategy": "recent", "decay": 0.3}, Recent(0.3)),
    ({"strategy": "rating", "window": 50}, NearRating(50)),
    ({"strategy": "target_win_rate", "target": 0.8, "width": 0.4}, TargetWinRate(0.8, 0.4)),
    ({"strategy": "pfsp"}, Pfsp()),
    ({"strategy": "pfsp", "power": 3}, Pfsp(3)),
    ({"strategy": "pfsp", "temperature": 4}, Pfsp(temperature=4)),
])
def test_the_configuration_names_strategy_and_options(options, expected):
    made = strategy_of(OpponentsConfig.model_validate(options))
    assert type(made) is type(expected) and vars(made) == vars(expected)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20).filter(lambda x: sum(x) > 0.01), st.integers(1, 30),
       st.floats(0, 1, exclude_max=True))
def test_everybody_gets_about_the_places_that_the_weights_say(weights, places, number):
    weights = np.array(weights) / np.sum(weights)
    picked = drawn(weights, places, number)
    assert len(picked) == places and picked == sorted(picked)
    for index, weight in enumerate(weights):
        assert abs(picked.count(index) - places * weight) < 1 + 1e-9
        assert weight > 0 or index not in picked


def test_on_average_everybody_gets_exactly_the_places_that_the_weights_say():
    weights, numbers = np.array([0.5, 0.3, 0.2]), (np.arange(1000) + 0.5) / 1000
    picked = np.array([np.bincount(drawn(weights, 4, number), minlength=3) for number in numbers])
    np.testing.assert_allclose(picked.mean(0), 4 * weights, atol=1e-3)
