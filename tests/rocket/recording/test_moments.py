"""Goals, saves, rallies and mechanics are found in games by hand, with the part of the game that shows them."""
from __future__ import annotations

import numpy as np
import pytest

from tests.rocket.recording.games import STEP, episode_of, nothing
from tests.rocket.test_env import random_actions, simulated
from wavedash.rocket.recording.episodes import Episodes
from wavedash.rocket.recording.events import Happened, with_success
from wavedash.rocket.recording.frames import RocketFrames
from wavedash.rocket.recording.moments import LONGEST, SHORTEST_RALLY, find_moments, may_have_moments
from wavedash.rocket.recording.shelf import NAME
from wavedash.rocket.recording.tape import make_tape

KMH = 0.036


def found(happened: Happened, speed=0.0, measures=(), teams=(0, 1)):
    cars = happened["touch"].shape[1]
    moments = find_moments(episode_of(happened, speed, cars), teams, STEP, measures)
    assert len({moment.kind for moment in moments}) == len(moments)
    for moment in moments:
        first, last = moment.shown
        assert 0 <= first <= last < len(happened) and (last - first) * STEP <= LONGEST + STEP
    return {moment.kind: moment for moment in moments}


def test_nothing_is_no_highlight():
    assert found(nothing(50)) == {}


def test_a_goal_is_shown_with_what_came_before_it():
    for frames in (30, 900):
        game = nothing(frames)
        game["goal"][-1, 1], game["goal_of"][-1] = True, 1
        goal = found(game, np.linspace(0, 3000, frames))["goal"]
        assert goal.score == round(3000 * KMH) and goal.shown == (max(0, frames - 1 - 300), frames - 1)
    game["goal"][-1] = False  # the control: an own goal is nobody's highlight
    assert found(game) == {}


def test_of_several_goals_the_fastest_is_kept():
    game, speed = nothing(400), np.zeros(400)
    game["goal"][[100, 300], 0], speed[[100, 300]] = True, [2500, 1000]
    goal = found(game, speed)["goal"]
    assert goal.score == round(2500 * KMH) and goal.shown == (0, 100)


def test_the_save_of_the_fastest_ball_is_kept_by_its_speed_before_it():
    game, speed = nothing(600), np.zeros(600)
    game["save"][[200, 400], 1] = True
    speed[[199, 200, 399, 400]] = [1500, 9, 2000, 8]
    save = found(game, speed)["save"]
    assert save.score == round(2000 * KMH) and save.shown == (400 - 120, 400 + 30)


def test_a_rally_is_touches_of_the_teams_in_turns():
    game = nothing(300, 4)
    order = [0, 1, 2, 3, 3, 0, 2, 1]  # blue: 0 and 1, orange: 2 and 3
    for number, car in enumerate(order):
        game["touch"][50 + 10 * number, car] = True
    rally = found(game, teams=(0, 0, 1, 1))["rally"]
    assert rally.score == 5, "blue, orange, blue, orange, blue: who touches it twice in a row has one turn"
    assert rally.shown == (50 - 30, 120 + 30)
    game["touch"][60] = True  # where both teams touch it in one step, it is nobody's turn
    assert found(game, teams=(0, 0, 1, 1))["rally"].score == 5
    alone = nothing(300)
    alone["touch"][::10, 0] = True
    assert found(alone) == {}
    short = nothing(300)
    short["touch"][[10, 20, 30], [0, 1, 0]] = True
    assert SHORTEST_RALLY == 4 and found(short) == {}


def test_a_rally_that_is_longer_than_a_moment_is_shown_where_it_is_densest():
    game = nothing(900)
    slow, fast = list(range(0, 500, 60)), list(range(600, 700, 10))
    for number, frame in enumerate(slow + fast):
        game["touch"][frame, number % 2] = True
    rally = found(game)["rally"]
    assert rally.score == len(fast) + 1 and rally.shown[0] == 480 - 30 and rally.shown[1] == 690 + 30


def test_successes_of_a_mechanic_are_counted_where_they_are_shown():
    success = np.zeros((400, 2, 2), np.bool_)
    success[[20, 300, 350], 1, 0] = True
    game = with_success(nothing(400), success)
    moments = found(game, measures=("turtle", "flip_reset"))
    assert list(moments) == ["flip_reset"]
    assert moments["flip_reset"].score == 2 and moments["flip_reset"].shown == (200, 380)
    assert moments["flip_reset"].title == "flip reset, 2 times"
    for name in ("outer.inner", "müll", "_9lives", "über/../all"):
        (kind,) = found(game, measures=("turtle", name))
        assert NAME.fullmatch(f"000000000001-{kind}-2.wdr"), "it can be part of the name of a file"


@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
def test_a_glance_at_raw_rows_misses_no_moment(simulator):
    """Of real episodes, in which cars tap the ball into the goal or nothing happens at all."""
    taps = "{'tests.rocket.recording.games:Tap': 1, kickoff: 1, random: 0}"
    env = simulated("env.count=12", f"env.rocket.starts={taps}", "env.rocket.endings={goal: {}, time_out: {seconds: 1.5}}",
                    simulator=simulator)
    env.reset(0)
    tape, frames, seen = make_tape(env.states[0], range(12), 60), RocketFrames.of(env.states[0]), []
    env.attach([tape])
    for action in random_actions(env, 60):
        env.step(action)
    for raw in Episodes(tape).read():
        found = find_moments(raw.encoded(frames), (0, 1), STEP)
        assert may_have_moments(raw) or not found
        seen.append((may_have_moments(raw), bool(found)))
    env.close()
    assert (True, True) in seen and (False, False) in seen
