"""Phases, clock and score: scripted matches by hand, and what holds for any sequence of ticks."""
from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wavedash.rlbot.server.referee import FirstGoals, Phase, Referee, Round, Seen, WholeMatch

NOTHING = Seen()
AIR, GROUND = Seen(ball_on_ground=False), Seen(ball_on_ground=True)


def play(referee: Referee, *ticks: Seen) -> list[Phase]:
    """Plays these ticks once play has begun, and countdowns before them. Returns the phase of every tick."""
    phases = []
    for seen in ticks:
        while not referee.playing and not referee.over:
            phases.append(referee.phase)
            referee.tick(NOTHING)
        phases.append(referee.phase)
        referee.tick(seen)
    return phases


def shortened(phases: list[Phase]) -> list[tuple[Phase, int]]:
    return [(phase, len(list(same))) for phase, same in groupby(phases)]


def test_a_match_with_a_goal() -> None:
    referee = WholeMatch(10.0, countdown=3.0, celebration=0.5)
    assert referee.kickoff_due and referee.left == 10.0
    phases = play(referee, *[AIR] * 100, Seen(ball_hit=True), *[AIR] * 600, Seen(goal=1), *[AIR] * 240, AIR)
    assert shortened(phases) == [(Phase.COUNTDOWN, 360), (Phase.KICKOFF, 101), (Phase.ACTIVE, 601), (Phase.GOAL_SCORED, 60),
                                 (Phase.COUNTDOWN, 360), (Phase.KICKOFF, 240), (Phase.ACTIVE, 1)]
    assert referee.score == [0, 1]
    # The clock ran in the tick of the hit, in the 600 after it, in that of the goal, in the last of the second kick-off (two
    # seconds without a hit make it active) and in the last one.
    assert referee.left == pytest.approx(10.0 - 604 / 120)


def test_play_goes_on_at_zero_until_the_ball_touches_the_ground() -> None:
    referee = WholeMatch(1.0, countdown=0.0)
    play(referee, Seen(goal=0), Seen(ball_hit=True), *[AIR] * 500)
    assert referee.left == 0.0 and not referee.over
    play(referee, GROUND)
    assert referee.over and [result.goals for result in referee.results] == [(1, 0)]


def test_a_goal_at_zero_counts_and_can_bring_overtime() -> None:
    referee = WholeMatch(1.0, longest_overtime=5.0, countdown=0.0)
    play(referee, Seen(goal=0), Seen(ball_hit=True), *[AIR] * 500, Seen(goal=1))
    assert referee.score == [1, 1] and not referee.over
    play(referee, Seen(ball_hit=True), *[GROUND] * 60)
    assert referee.overtime and not referee.over and referee.left == pytest.approx(61 / 120)
    play(referee, Seen(goal=1), NOTHING)
    assert referee.over and referee.results[0].goals == (1, 2)


def test_an_overtime_without_a_goal_is_a_draw() -> None:
    referee = WholeMatch(0.5, longest_overtime=1.0, countdown=0.0)
    play(referee, Seen(ball_hit=True), *[GROUND] * 59)
    assert referee.overtime and referee.kickoff_due
    play(referee, Seen(ball_hit=True), *[GROUND] * 119)
    assert referee.over and referee.results == [Round((0, 0), (60 + 120) / 120)]


def test_games_to_the_first_goal() -> None:
    referee = FirstGoals(3, seconds=2.0, countdown=0.1, celebration=0.1)
    play(referee, *[AIR] * 99, Seen(goal=1), *[AIR] * 240, Seen(goal=0), NOTHING)
    assert referee.over and referee.score == [1, 1]
    assert referee.results == [Round((0, 1), 100 / 120), Round((0, 0), 2.0), Round((1, 0), 1 / 120)]


ticks = st.builds(Seen, goal=st.sampled_from([-1] * 30 + [0, 1]), ball_hit=st.booleans(), ball_on_ground=st.booleans())


@settings(deadline=None)
@given(st.sampled_from([lambda: WholeMatch(0.5, 0.5, 0.05, 0.05), lambda: FirstGoals(3, 0.25),
                        lambda: WholeMatch(0.5, 0.0, 0.0, 0.0)]), st.lists(ticks, max_size=300))
def test_whatever_happens_the_score_adds_up_and_the_match_ends(make: Callable[[], Referee], played: list[Seen]) -> None:
    referee = make()
    goals, kickoffs = [0, 0], 0
    for number in range(4000):
        if referee.over:
            break
        kickoffs += referee.kickoff_due
        assert referee.left >= 0.0 and not (referee.kickoff_due and referee.playing and referee.in_phase)
        seen = played[number] if number < len(played) else GROUND
        if referee.playing and seen.goal >= 0:
            goals[seen.goal] += 1
        referee.tick(seen)
    assert referee.over, "play is over at the latest when the ball lies on the ground"
    assert referee.score == goals
    assert [sum(result.goals[team] for result in referee.results) for team in (0, 1)] == goals
    assert kickoffs >= 1
