"""Members: how results are counted, forgotten and turned into win rates and ratings."""
from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from wavedash.league.members import ANCHOR, FEW, POLICY, Member, known, ratings

results = st.tuples(*[st.integers(0, 500)] * 3)


def member(name: str, step: int, *recent: int) -> Member:
    made = Member(name=name, step=step)
    made.add(recent or (0, 0, 0))
    return made


@given(st.lists(results, max_size=10))
def test_games_are_counted_from_the_side_of_the_policy(games):
    one = Member(name="one", step=0)
    for game in games:
        one.add(game)
    assert one.total == one.unreported == [sum(column) for column in zip(*games, strict=True)] or not games
    share = (sum(won + drawn / 2 for won, drawn, _ in games) + FEW / 2) / (sum(map(sum, games)) + FEW)
    assert one.win_rate == pytest.approx(share)


def test_nothing_is_known_at_first_and_again_when_all_is_long_ago():
    one = member("one", 0, 100, 0, 0)
    assert Member(name="new", step=0).win_rate == 0.5 and one.win_rate > 0.9
    for _ in range(20):
        one.fade(0.5)
    assert one.win_rate == pytest.approx(0.5, abs=1e-4) and one.total == [100, 0, 0]


def test_a_member_is_beaten_only_after_enough_recent_games():
    assert member("one", 0, 99, 0, 1).is_beaten(0.98, 100)
    assert not member("one", 0, 98, 0, 2).is_beaten(0.98, 100)
    assert not member("one", 0, 98, 1, 0).is_beaten(0.98, 100)
    assert not member("one", 0, 100, 0, 0).is_beaten(1.0, 100), "1 prunes nobody"


def test_ratings_follow_the_recent_games_and_are_anchored_at_the_oldest_member():
    members = [member("old", 0, 900, 0, 100), member("even", 10, 500, 0, 500), member("hard", 20, 100, 0, 900),
               member("new", 30)]
    rated = ratings(members)
    assert rated["old"] == ANCHOR
    assert rated["even"] == pytest.approx(rated[POLICY], abs=5) and rated["new"] == pytest.approx(rated[POLICY], abs=5)
    elo = 400 * math.log10(9)  # of a player that wins nine of ten games
    assert rated[POLICY] - rated["old"] == pytest.approx(elo, abs=25)
    assert rated["hard"] - rated[POLICY] == pytest.approx(elo, abs=25)


def test_a_strategy_is_told_what_is_known_of_everybody():
    members = [member("old", 0, 900, 0, 100), member("then", 10, 500, 0, 500)]
    told, own = known(members)
    assert own == ratings(members)[POLICY] and [x.rating for x in told] == [ratings(members)[name] for name in ("old", "then")]
    assert [x.step for x in told] == [0, 10] and [x.win_rate for x in told] == [one.win_rate for one in members]


@pytest.mark.parametrize("wrong", [
    {"name": "../outside"}, {"name": ".hidden"}, {"name": "a/b"}, {"name": ""}, {"step": -1}, {"total": [1, 2]},
    {"recent": [1.0, -1.0, 0.0]}, {"recent": [1.0, float("nan"), 0.0]}, {"unknown": 1},
])
def test_a_state_that_cannot_be_right_is_refused(wrong):
    with pytest.raises(ValidationError):
        Member.model_validate({"name": "one", "step": 0, **wrong})
