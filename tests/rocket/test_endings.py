"""Endings against sequences of steps worked out by hand, with arenas that begin at different times."""
from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.rocket.no_host_sync import NoHostSync
from tests.rocket.rocketsim_arena import RocketSimArena
from wavedash.envs.errors import EnvError
from wavedash.rocket import names
from wavedash.rocket.constants import BALL_RADIUS
from wavedash.rocket.endings import BallOnGround, Goal, NoTouch, Recovered, TimeOut
from wavedash.rocket.parts import Ending
from wavedash.rocket.state import GameState


class Game:
    """Two arenas with two cars each, stepped by hand as an environment would: an episode that ended begins again at once."""

    def __init__(self, ending: Ending) -> None:
        self.state = GameState.empty(2, 2)
        self.state.cars.present.fill_(True)
        self.state.clear_events()
        self.ending = ending
        ending.bind(self.state)
        ending.begin(self.state, torch.tensor([True, True]))

    def step(self, ticks: int = 8, touches: tuple[int, int] = (0, 0), goal: tuple[int, int] = (-1, -1),
             ball: tuple[float, float] | None = None, falling: tuple[float, float] = (0.0, 0.0)) -> list[bool]:
        """What the ending returns. `touches` are the second car's, `ball` is the ball's height and `falling` its speed."""
        previous = self.state.clone()
        self.state.clear_events()
        self.state.game.tick += ticks
        self.state.events.touches[:, 1] = torch.tensor(touches)
        self.state.game.goal.copy_(torch.tensor(goal))
        if ball is not None:
            self.state.ball.position[:, 2] = torch.tensor(ball)
            self.state.ball.velocity[:, 2] = -torch.tensor(falling)
        with NoHostSync():
            over: Tensor = self.ending(self.state, previous, self.state.events)
        assert over.shape == (2,) and over.dtype == torch.bool
        return over.tolist()

    def begin(self, *arenas: bool, tick: int = 0, ball: float = 93.15) -> None:
        begins = torch.tensor(arenas)
        self.state.game.tick[begins] = tick
        self.state.ball.position[begins, 2] = ball
        self.state.ball.velocity[begins] = 0
        self.ending.begin(self.state, begins)


def test_a_goal_of_either_team_terminates():
    game = Game(Goal())
    assert game.step() == [False, False]
    assert game.step(goal=(0, -1)) == [True, False]
    assert game.step(goal=(-1, 1)) == [False, True]
    assert game.step() == [False, False]
    assert not Goal().truncates


def test_a_time_out_counts_the_ticks_of_its_own_episode():
    """0.2 s are 24 ticks: steps have different lengths, and one arena begins anew in between."""
    game = Game(TimeOut(seconds=0.2))
    assert game.step(8) == [False, False]
    assert game.step(15) == [False, False]  # 23
    game.begin(False, True)
    assert game.step(1) == [True, False]  # 24 and 1
    game.begin(True, False)
    assert game.step(22) == [False, False]  # 22 and 23
    assert game.step(2) == [True, True]  # 24 and 25
    game.begin(True, True, tick=1000)  # a clock that begins elsewhere
    assert game.step(23) == [False, False]
    assert game.step(1) == [True, True]
    assert TimeOut().truncates


def test_no_touch_counts_from_the_last_touch_or_the_beginning():
    """Half a second is 60 ticks."""
    game = Game(NoTouch(seconds=0.5))
    assert game.step(40) == [False, False]
    assert game.step(19, touches=(0, 2)) == [False, False]  # 59 and 0
    assert game.step(1) == [True, False]  # 60 and 1
    game.begin(True, False)
    assert game.step(58) == [False, False]  # 58 and 59
    assert game.step(8, touches=(1, 0)) == [False, True]  # 0 and 67: touched in time, and not
    game.begin(False, True)
    assert game.step(59) == [False, False]
    assert game.step(1, touches=(0, 1)) == [True, False]
    assert NoTouch().truncates


def test_a_touch_by_an_empty_seat_does_not_count():
    game = Game(NoTouch(seconds=0.5))
    game.state.cars.present[:, 1] = False
    assert game.step(60, touches=(1, 0)) == [True, True]


def test_the_ball_on_the_ground_ends_only_what_was_in_the_air():
    game = Game(BallOnGround(height=300))
    game.begin(True, False, ball=500)
    game.begin(False, True, ball=93.15)
    assert game.step(ball=(400, 93.15)) == [False, False]
    assert game.step(ball=(BALL_RADIUS + 5.1, 299)) == [False, False]
    assert game.step(ball=(BALL_RADIUS + 4.9, BALL_RADIUS + 1)) == [True, False]  # the other was never above 300
    game.begin(True, False, ball=93.15)
    assert game.step(ball=(93.15, 301)) == [False, False]  # forgotten; seen now
    assert game.step(ball=(93.15, 93.15)) == [False, True]


def test_a_bounce_between_two_steps_counts_unless_a_car_lifted_the_ball():
    """From a height of 150 at 1000 uu/s down, a step of 67 uu ends below the floor; after the bounce the ball is at 110."""
    game = Game(BallOnGround(height=300))
    game.begin(True, True, ball=500)
    assert game.step(ball=(150, 180), falling=(1000, 1000)) == [False, False]
    assert game.step(ball=(110, 113), falling=(-600, 1000)) == [True, False]  # from 180 it is still falling
    game.begin(True, True, ball=500)
    assert game.step(ball=(150, 150), falling=(1000, 1000)) == [False, False]
    assert game.step(ball=(200, 200), falling=(-600, -600), touches=(1, 0)) == [False, True]


@pytest.mark.parametrize("throw", [0.0, 300.0, -900.0, -1500.0, -2500.0])
def test_the_first_bounce_in_rocketsim_ends_the_episode_in_its_step(throw):
    """It does at any speed, although the ball is observed only every eighth tick."""
    state = GameState.empty(1, 1)
    state.cars.present.fill_(True)
    state.cars.rotation.copy_(torch.eye(3))
    state.ball.rotation.copy_(torch.eye(3))
    state.cars.position[0, 0] = torch.tensor([2000.0, 0.0, 17.0])
    state.ball.position[0], state.ball.velocity[0] = torch.tensor([0.0, 0.0, 800.0]), torch.tensor([200.0, 0.0, throw])
    pitch, ending, bounced = RocketSimArena(state).set(state, 0), BallOnGround(), False
    ending.bind(state)
    ending.begin(state, torch.tensor([True]))
    while not bounced:
        previous = state.clone()
        for _ in range(8):
            before = pitch.ball.vel.z
            bounced |= pitch.step().ball.vel.z > before
        state.game.tick += 8
        state.ball.position[0] = torch.tensor(pitch.ball.pos.as_tuple())
        state.ball.velocity[0] = torch.tensor(pitch.ball.vel.as_tuple())
        assert ending(state, previous, state.events).tolist() == [bounced]


def test_the_ball_on_the_ground_terminates_or_truncates_as_configured():
    assert not BallOnGround().truncates
    assert BallOnGround(truncates=True).truncates


def test_a_recovery_ends_when_the_last_car_is_on_its_wheels():
    """Cars of two arenas: the first car lies on its roof, in the second arena both do."""
    state = GameState.empty(2, 2)
    state.cars.present.fill_(True)
    state.cars.rotation.copy_(torch.eye(3))
    roof, wheels = torch.tensor([[True, False], [True, True]]), torch.tensor([[False, True], [False, False]])

    def lie(roof: torch.Tensor, wheels: torch.Tensor) -> list[bool]:
        state.cars.has_contact.copy_(roof)
        state.cars.contact_normal.copy_(torch.where(roof, -1.0, 1.0).unsqueeze(-1) * torch.tensor([0.0, 0.0, 1.0]))
        state.cars.on_ground.copy_(wheels)
        return ending(state, state, state.events).tolist()

    ending = Recovered()
    ending.bind(state)
    never = torch.zeros(2, 2, dtype=torch.bool)
    assert lie(never, ~never) == [False, False], "nobody lay on the roof"
    lie(roof, wheels)
    ending.begin(state, torch.tensor([True, True]))
    assert lie(roof, wheels) == [False, False]
    assert lie(never, wheels) == [False, False], "in the air"
    assert lie(never, torch.tensor([[True, True], [True, False]])) == [True, False], "one of the second arena is still down"
    state.cars.is_demoed[1, 1] = True
    assert lie(never, torch.tensor([[True, True], [True, False]])) == [False, True], "a demolished car is not waited for"
    state.cars.is_demoed.fill_(False)
    assert lie(roof, wheels) == [False, False]
    assert lie(never, ~never) == [True, True], "also of a car that fell during the episode"
    assert Recovered().truncates


@pytest.mark.parametrize("name", ["goal", "no_touch", "time_out", "ball_on_ground", "recovered"])
def test_endings_have_names(name):
    assert isinstance(names.make("ending", name), Ending)
    assert set(names.shipped("ending")) == {"goal", "no_touch", "time_out", "ball_on_ground", "recovered"}


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), 1e7])
@pytest.mark.parametrize("ending", [TimeOut, NoTouch])
def test_a_time_limit_that_is_none_is_refused(ending, seconds):
    with pytest.raises(EnvError, match=f"{ending.__name__} needs seconds above 0 .*leave it out"):
        ending(seconds)
