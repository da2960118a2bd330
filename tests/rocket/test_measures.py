"""Every measure says what its docstring says, on games that are written state by state; each game is played from both sides."""
from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from tests.rocket.measured_games import (
    AFTER,
    AIR,
    ALONG,
    AT_WALL,
    BACK,
    DOWN_FIELD,
    GAP,
    LOST,
    ROOF,
    TO_GOAL,
    UP_FIELD,
    WHEELS,
    above_ball,
    aloft,
    ball,
    carried,
    demolished,
    drives,
    duel,
    flies,
    flipping,
    on_its_roof,
    play,
    still,
    touch,
    used,
)
from wavedash.errors import UserError
from wavedash.rocket import names
from wavedash.rocket.measures import AirDribble, Dribble, FlipReset, JumpChallenge, Measures, Turtle, Wall
from wavedash.rocket.state import GameState

# Turtle

def test_a_car_that_turns_over_in_time_has_recovered() -> None:
    assert play(Turtle, [WHEELS, ROOF, ROOF, AIR, WHEELS, WHEELS]) == [(4, True)]
    assert play(Turtle, [ROOF, AIR, WHEELS]) == [(2, True)], "an episode may begin on the roof"
    assert play(Turtle, [WHEELS, AIR, WHEELS, AIR]) == [], "a jump is no recovery"


def test_the_time_of_a_recovery_is_counted_from_the_fall_in_ticks() -> None:
    measure, states = Turtle(), [WHEELS, ROOF, ROOF, AIR, WHEELS]
    states = [state.clone() for state in states]
    for step, state in enumerate(states):
        state.game.tick.fill_(50 + 8 * step)
    measure.bind(states[0])
    measure.begin(states[0], torch.tensor([True]))
    for previous, state in pairwise(states):
        outcome = measure(state, previous, state.events)
    assert outcome.success[0, 0] and outcome.ticks is not None and int(outcome.ticks[0, 0]) == 3 * 8


def test_a_car_that_stays_on_its_roof_fails_once() -> None:
    def lies(steps: int) -> list[GameState]:
        return [WHEELS, *[ROOF] * steps, WHEELS]

    quick = lambda: Turtle(window=0.2)  # noqa: E731 (24 ticks)
    assert play(quick, lies(3)) == [(4, True)], "24 ticks are within the window"
    assert play(quick, lies(4)) == [(5, False)], "32 ticks are not"
    assert play(quick, lies(30)) == [(5, False)], "the fall at step 1 was decided 32 ticks later, and only then"
    assert play(quick, [*lies(30), ROOF, WHEELS]) == [(5, False), (33, True)]


def test_neither_a_demolition_nor_a_side_of_the_car_is_a_recovery() -> None:
    assert play(Turtle, [ROOF, still(on_its_roof, demolished()), WHEELS]) == [], "a respawn is no recovery"

    def on_its_side(state: GameState) -> None:
        on_its_roof(state)
        state.cars.rotation[:, 0] = torch.tensor([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # its up axis points sideways

    assert play(Turtle, [still(on_its_side), WHEELS]) == []


# Wall

def test_a_wall_ball_that_is_hit_toward_the_goal_is_a_success_at_once() -> None:
    assert play(Wall, [still(ball(AT_WALL)), still(ball(AT_WALL, TO_GOAL), touch()), *[AFTER] * 20]) == [(1, True)]
    hit_off = [still(ball(AT_WALL)), still(ball((3700.0, 100.0, 800.0), TO_GOAL), touch()), AFTER]
    assert play(Wall, hit_off) == [(1, True)], "it was at the wall when the step began"


@pytest.mark.parametrize("velocity", [ALONG, BACK, (-200.0, 260.0, 900.0), (0.0, 0.0, 0.0)])
def test_a_wall_ball_that_goes_elsewhere_or_is_slow_is_a_failure(velocity: tuple[float, float, float]) -> None:
    hit = still(ball(AT_WALL, velocity), touch())
    after = [still(ball(AT_WALL, velocity))] * 20
    assert play(Wall, [still(ball(AT_WALL)), hit, *after]) == [(9, False)], "after 0.5 s: 64 ticks"


def test_hits_of_balls_in_the_field_or_in_the_curve_are_no_attempts() -> None:
    for place in ((0.0, 0.0, 800.0), (3990.0, 0.0, 200.0), (3800.0, 0.0, 800.0)):
        assert play(Wall, [still(ball(place)), still(ball(place, TO_GOAL), touch()), *[AFTER] * 20]) == []
    assert play(Wall, [still(ball(AT_WALL)), still(ball(AT_WALL, TO_GOAL)), *[AFTER] * 20]) == [], "nobody hit it"


def test_a_second_touch_belongs_to_the_same_attempt() -> None:
    first, second = still(ball(AT_WALL, ALONG), touch()), still(ball((3500.0, 300.0, 800.0), TO_GOAL), touch())
    waits = still(ball(AT_WALL, ALONG))
    assert play(Wall, [waits, first, *[waits] * 6, second, *[AFTER] * 20]) == [(8, True)]
    assert play(Wall, [waits, *[first] * 20, *[waits] * 20]) == [(28, False)], "pushing it along is one attempt"


def test_a_wall_ball_that_another_car_takes_is_a_failure() -> None:
    hit, taken = still(ball(AT_WALL, ALONG), touch()), still(ball(AT_WALL, BACK), touch(1))
    assert play(Wall, [still(ball(AT_WALL)), hit, taken, *[AFTER] * 20]) == [(2, False)]
    both = [still(ball(AT_WALL)), hit, taken, *[AFTER] * 20]
    assert play(Wall, both, seat=1) == [(2, True)], "the opponent hit it toward the other goal"


# Dribble

def test_a_ball_that_stays_on_the_roof_is_carried() -> None:
    assert play(Dribble, [LOST, carried(touch()), *[carried()] * 60]) == [(31, True)], "once, after 2 s: 240 ticks"
    bouncing = [carried(touch()), carried(height=200.0), carried(height=260.0), carried(height=200.0)] * 15
    assert play(Dribble, [LOST, *bouncing]) == [(32, True)], "at the time it is above the roof again"
    assert play(lambda: Dribble(seconds=0.5), [LOST, carried(touch()), *[carried()] * 60]) == [(9, True)]


def test_a_ball_that_falls_down_early_is_a_failure() -> None:
    assert play(Dribble, [LOST, carried(touch()), *[carried()] * 10, *[LOST] * 30]) == [(15, False)], "after 0.2 s without it"
    assert play(Dribble, [LOST, carried(touch()), *[carried()] * 10, carried(touch(1)), *[LOST] * 9]) == [(12, False)]
    assert play(Dribble, [LOST, carried(touch()), *[carried()] * 10, *[carried(demolished())] * 9]) == [(15, False)]


def test_a_ball_that_only_touches_the_roof_is_no_attempt() -> None:
    bounce = [LOST, carried(touch()), carried(height=190.0), *[carried(height=300.0)] * 9]
    assert play(Dribble, bounce) == []
    assert play(lambda: Dribble(least=0.0), bounce) == [(6, False)], "unless every ball on the roof is to count"


@pytest.mark.parametrize("state", [
    carried(height=76.0, aside=105.0),  # beside the car, on the floor
    carried(aside=150.0),
    carried(height=260.0),
    carried(flies([0.0, 0.0, 17.0])),
])
def test_a_ball_that_is_not_on_a_driving_car_is_not_carried(state: GameState) -> None:
    hit = state.clone()
    touch()(hit)
    assert play(lambda: Dribble(least=0.0), [LOST, *[hit] * 60]) == []
    assert play(Dribble, [LOST, *[carried()] * 60]) == [], "nor is one that the car has not touched"


# Air dribble

def test_three_hits_in_one_flight_are_an_air_dribble() -> None:
    hit = aloft(touch())
    assert play(AirDribble, [aloft(), hit, *GAP, hit, *GAP, hit, *GAP, hit, *[WHEELS] * 5]) == [(9, True)], "once"
    assert play(lambda: AirDribble(hits=4), [aloft(), hit, *GAP, hit, *GAP, hit, *GAP, hit]) == [(13, True)]
    assert play(AirDribble, [aloft(), *[hit] * 9]) == [(7, True)], "one long contact: a hit every 24 ticks"
    assert play(AirDribble, [aloft(), *[hit] * 6, WHEELS]) == [(7, False)], "two hits of it"


def test_a_flight_that_ends_after_two_hits_is_a_failure() -> None:
    hit = aloft(touch())
    two = [aloft(), hit, *GAP, hit, *GAP]
    assert play(AirDribble, [*two, WHEELS, hit]) == [(9, False)], "the car lands"
    on_the_wall = aloft()
    on_the_wall.cars.on_ground[:, 0] = True
    assert play(AirDribble, [*two, on_the_wall, hit]) == [(9, False)]
    assert play(AirDribble, [*two, aloft(height=200.0), hit]) == [(9, False)]
    assert play(AirDribble, [*two, aloft(touch(1)), hit]) == [(9, False)], "the opponent hits it"
    assert play(AirDribble, [*two, aloft(demolished()), hit]) == [(9, False)]
    assert play(AirDribble, [aloft(), hit, *GAP, hit, *[aloft()] * 30]) == [(21, False)], "over 1 s without a hit"


def test_single_hits_and_hits_from_the_ground_are_no_air_dribble() -> None:
    hit = aloft(touch())
    assert play(AirDribble, [aloft(), hit, *GAP, WHEELS, hit, *GAP, WHEELS, hit, WHEELS]) == []
    assert play(lambda: AirDribble(least=1), [aloft(), hit, *GAP, WHEELS, hit]) == [(5, False)]
    standing = still(drives([0.0, 0.0, 17.0]), ball((0.0, 0.0, 148.0)), touch())
    assert play(lambda: AirDribble(least=1), [standing] * 60) == []


def test_a_flip_reset_does_not_interrupt_an_air_dribble() -> None:
    """The game says that a car is on the ground when its wheels are on the ball."""
    hit = aloft(touch())
    reset = still(flies([0.0, 0.0, 1000.0]), ball((0.0, 0.0, 870.0)), touch())
    reset.cars.on_ground[:, 0] = True
    assert play(AirDribble, [aloft(), hit, *GAP, reset, *GAP, hit, *GAP]) == [(9, True)]


# Flip reset

def test_a_reset_that_is_used_for_a_hit_is_a_success() -> None:
    gained = [above_ball(used), above_ball(touch())]
    assert play(FlipReset, [*gained, above_ball(), above_ball(flipping(3)), above_ball(flipping(11), touch())]) == [(4, True)]
    assert play(FlipReset, [*gained, above_ball(flipping(5), touch(ticks_ago=2))]) == [(2, True)], "flip and hit in one step"
    assert play(FlipReset, [*gained, *[above_ball()] * 200, above_ball(flipping(5), touch())]) == [(202, True)]


def test_the_contact_of_the_reset_is_not_the_hit() -> None:
    gained = [above_ball(used), above_ball(touch())]
    early = above_ball(flipping(5), touch(ticks_ago=6))
    assert play(FlipReset, [*gained, early]) == [], "the flip began one tick after that contact"
    late = [above_ball(flipping(5 + 8 * step), gap=500.0) for step in range(30)]
    assert play(FlipReset, [*gained, *late, above_ball(used, touch())]) == [(12, False)], "0.65 s after it began"


def test_a_reset_that_is_not_used_is_a_failure() -> None:
    gained = [above_ball(used), above_ball(touch())]
    assert play(FlipReset, [*gained, above_ball(), WHEELS, above_ball(flipping(3), touch())]) == [(3, False)], "it lands"
    assert play(FlipReset, [*gained, above_ball(demolished())]) == [(2, False)]
    doubled = above_ball(touch())
    doubled.cars.has_double_jumped[:, 0] = True
    assert play(FlipReset, [*gained, doubled, above_ball(flipping(3), touch())]) == [(2, False)]
    again = [above_ball(flipping(3), gap=190.0), above_ball(), above_ball(flipping(3), touch())]
    assert play(FlipReset, [*gained, *again]) == [(3, False), (4, True)], "a second reset is a second attempt"


def test_flips_that_come_back_elsewhere_are_no_resets() -> None:
    for other in (above_ball(gap=250.0), above_ball(gap=-130.0), still(drives([0.0, 0.0, 17.0]), ball((0.0, 0.0, -110.0)))):
        assert play(FlipReset, [above_ball(used), other, above_ball(flipping(3), touch()), WHEELS]) == []
    had_it = [above_ball(), above_ball(touch()), above_ball(flipping(3), touch()), WHEELS]
    assert play(FlipReset, had_it) == []


# Jump challenge

def test_the_ball_goes_to_the_winner_of_a_challenge() -> None:
    meets = [duel(), duel(touch(0), touch(1))]
    won, lost, slow = ([*meets, *[duel(velocity=v)] * 9] for v in (UP_FIELD, DOWN_FIELD, (900.0, 100.0, 0.0)))
    assert play(JumpChallenge, won) == [(6, True)] and play(JumpChallenge, won, seat=1) == [(6, False)], "after 0.3 s: 40 ticks"
    assert play(JumpChallenge, lost) == [(6, False)] and play(JumpChallenge, lost, seat=1) == [(6, True)]
    assert play(JumpChallenge, slow) == play(JumpChallenge, slow, seat=1) == [(6, False)], "neither wins"


def test_hits_shortly_after_each_other_are_one_challenge() -> None:
    after = [duel(velocity=UP_FIELD)] * 9
    near, far = ([duel(), duel(touch(1)), *[duel()] * between, duel(touch(0)), *after] for between in (2, 3))
    assert play(JumpChallenge, near) == [(9, True)], "24 ticks apart"
    assert play(JumpChallenge, far) == [], "32 ticks apart"
    scrum = [duel(touch(0), touch(1)), duel(touch(1)), duel(touch(0))]
    assert play(JumpChallenge, [duel(), *scrum, *after]) == [(8, True)], "counted from the last hit"


def test_a_goal_decides_a_challenge() -> None:
    goal = duel(velocity=(0.0, 2000.0, 0.0))
    goal.game.goal.fill_(0)
    assert play(JumpChallenge, [duel(), duel(touch(0), touch(1)), goal]) == [(2, True)]


def test_challenges_on_the_ground_alone_or_of_team_mates_do_not_count() -> None:
    after = [duel(velocity=UP_FIELD)] * 9

    def grounded(state: GameState) -> None:
        state.cars.on_ground[:, 1] = True

    assert play(JumpChallenge, [duel(), duel(touch(0), touch(1), grounded), *after]) == []
    assert play(JumpChallenge, [duel(), duel(touch(0)), *after]) == []
    assert play(JumpChallenge, [duel(), duel(touch(0), touch(1), height=93.0), *after]) == [], "a kick-off"
    in_the_air = flies([0.0, -150.0, 250.0]), flies([0.0, 150.0, 250.0], 1)
    mates = still(*in_the_air, ball((0.0, 0.0, 300.0)), touch(0), touch(1), blue=2)
    assert play(JumpChallenge, [mates] * 9) == []


# All

SUCCESSES = {
    "turtle": [ROOF, AIR, WHEELS],
    "wall": [still(ball(AT_WALL)), still(ball(AT_WALL, ALONG), touch()), still(ball((3500.0, 0.0, 800.0), TO_GOAL), touch())],
    "dribble": [LOST, carried(touch()), *[carried()] * 30],
    "air_dribble": [aloft(), aloft(touch()), *GAP, aloft(touch()), *GAP, aloft(touch())],
    "flip_reset": [above_ball(used), above_ball(touch()), above_ball(flipping(3), touch())],
    "jump_challenge": [duel(), duel(touch(0), touch(1)), *[duel(velocity=UP_FIELD)] * 5],
}
"""Games that end with the step of a success"""


@pytest.mark.parametrize("name", names.shipped("measure"))
def test_the_end_of_an_episode_decides_nothing_and_clears_everything(name: str) -> None:
    states, last = SUCCESSES[name], len(SUCCESSES[name]) - 1
    assert play(lambda: names.make("measure", name), states) == [(last, True)]
    interrupted = [*states[:-1], LOST, states[-1], *[LOST] * 100]
    without = {step for step, _ in play(lambda: names.make("measure", name), interrupted, begins=[last])}
    assert last not in without and last + 1 not in without
    again = [*states[:-1], *states]
    assert play(lambda: names.make("measure", name), again, begins=[last]) == [(2 * last, True)], "the next episode counts"


@pytest.mark.parametrize("options", [
    {"turtle": {"window": -1}}, {"air_dribble": {"hits": 1}}, {"wall": {"reach": float("nan")}},
    {"dribble": {"seconds": "two"}}, {"dribble": {"max_height": 50}},
])
def test_options_that_make_no_sense_are_refused(options: dict[str, dict[str, float]]) -> None:
    with pytest.raises(UserError, match="of a measure must be a number of at least"):
        Measures.named([options])


def test_measures_are_found_by_name_with_options() -> None:
    made = Measures.named(["turtle", {"Dribble": {"seconds": 3}}, {"tests.rocket.test_measures:OwnMeasure": {}}])
    assert list(made.parts.keys()) == ["turtle", "dribble", "own_measure"]
    assert list(made.shown()) == ["attempt/turtle", "attempt/turtle_ticks", "attempt/dribble", "attempt/own_measure",
                                  "attempt/own_measure_ticks"]
    with pytest.raises(UserError, match="'dribble' twice"):
        Measures.named(["dribble", {"Dribble": {}}])
    with pytest.raises(UserError, match="did you mean 'turtle'"):
        Measures.named(["turtel"])
    with pytest.raises(UserError, match="each entry is one measure"):
        Measures.named([{"turtle": {}, "wall": {}}])


class OwnMeasure(Turtle):
    """A user's own measure."""
