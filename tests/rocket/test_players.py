"""Scripted players treat both teams, left and right alike, and each does what it says."""
from __future__ import annotations

import math

import pytest
import torch

from tests.rocket.no_host_sync import NoHostSync
from tests.rocket.random_states import random_state
from wavedash.rocket import names
from wavedash.rocket.actions import LookupTable
from wavedash.rocket.constants import KICKOFF_SPAWNS
from wavedash.rocket.geometry import rotation
from wavedash.rocket.parts import ScriptedPlayer, Start
from wavedash.rocket.players import Chaser, Defender, Idle, Random
from wavedash.rocket.simulator import Simulator
from wavedash.rocket.starts import Kickoff, Turtle
from wavedash.rocket.state import ROLL, STEER, STICKS, YAW, GameState

SHIPPED = sorted(names.shipped("player"))


def asked(player: ScriptedPlayer, state: GameState) -> torch.Tensor:
    player.bind(state)
    player.begin(state, torch.ones(state.arenas, dtype=torch.bool))
    with NoHostSync():
        return player.controls(state)


def close_games(seed: int) -> GameState:
    """Random states; in the first half of them the ball is just ahead of the first car."""
    state = random_state(400, 2, 2, seed)
    state.ball.position[:200] = state.cars.position[:200, 0] + 300 * state.cars.forward[:200, 0]
    return state


def reflected(state: GameState) -> GameState:
    """The state with left and right exchanged: it is mirrored in the plane through the middles of both goals."""
    other, flip = state.clone(), torch.tensor([-1.0, 1.0, 1.0])
    for body in (other.ball, other.cars):
        for name in ("position", "velocity"):
            getattr(body, name).mul_(flip)
        body.angular_velocity.mul_(-flip)
        body.rotation.mul_(flip.unsqueeze(-1))
        body.rotation[..., 1].mul_(-1)  # the axis to the right stays on the car's right side
    return other


def test_these_players_ship():
    assert SHIPPED == ["chaser", "defender", "idle", "random"]


@pytest.mark.parametrize("name", SHIPPED)
def test_controls_are_possible_and_the_same_from_the_other_end_of_the_field(name):
    """The whole game turned by half a turn with the teams exchanged is the same game, so the same controls are right."""
    state = close_games(seed=3)
    controls = asked(names.make("player", name), state)
    assert controls.shape == (400, 4, 8) and controls.abs().max() <= 1.0
    buttons = controls[..., STICKS:]
    assert ((buttons == 0) | (buttons == 1)).all()
    if name != "idle":
        assert all(len(column.unique()) > 1 for column in controls[..., 1:].flatten(0, 1).t()), "all but throttle vary"
    assert torch.equal(asked(names.make("player", name), state.mirrored()), controls)


@pytest.mark.parametrize("player", [Chaser(), Defender()])
def test_left_and_right_are_alike(player):
    state = close_games(seed=4)
    expected = asked(player, state).clone()
    expected[..., [STEER, YAW, ROLL]] *= -1
    torch.testing.assert_close(asked(player, reflected(state)), expected)


def test_random_draws_every_row_that_is_allowed_and_no_other():
    state = random_state(4, 1, 1, seed=5, empty=0.0)
    player, table = Random(seed=1), LookupTable()
    for part in (player, table):
        part.bind(state)
    offered = table.mask(state).flatten(0, 1)
    drawn = torch.stack([player.controls(state) for _ in range(3_000)], 2).flatten(0, 1)  # [cars, draws, 8]
    for car, rows in enumerate(offered):
        share = (drawn[car].unsqueeze(1) == table.table).all(-1).float().mean(0)
        assert torch.equal(share > 0, rows)
        assert share[rows].max() < 2.0 * share[rows].min() + 0.02, "rows are drawn equally often"
    assert not torch.equal(drawn[:, 0], drawn[:, 1]), "it draws anew each time"


# On the field


@pytest.fixture(params=["warp", "rocketsim"], scope="module")
def simulator(request):
    """Five arenas of 1v1."""
    if request.param == "rocketsim":
        from wavedash.rocket.rocketsim.simulator import RocketSimSimulator as Chosen
    else:
        from wavedash.rocket.sim.simulator import WarpSimulator as Chosen
    made: Simulator = Chosen(5, 1, 1)
    yield made
    made.close()


def begin(simulator: Simulator, *starts: Start) -> GameState:
    generator = torch.Generator().manual_seed(0)
    for start in (Kickoff(), *starts):
        start.bind(simulator.state)
        start.write(simulator.state, generator)
    simulator.place(torch.ones(5, dtype=torch.bool))
    return simulator.state


def test_a_chaser_reaches_the_ball_from_every_spot_of_a_kickoff(simulator):
    state, touched = begin(simulator), torch.zeros(5, 2, dtype=torch.bool)
    spots = torch.tensor(KICKOFF_SPAWNS)
    state.cars.position[:, 0, :2] = spots[:, :2]
    state.cars.rotation[:, 0] = rotation(spots[:, 2])
    state.cars.position[:, 1, :2] = torch.tensor([3500.0, 4500.0])  # orange is out of the way
    simulator.place(torch.ones(5, dtype=torch.bool))
    for _ in range(60):  # 4 seconds
        simulator.step(Chaser().controls(state), ticks=8, delay=1)
        touched |= state.events.touches > 0
    assert touched[:, 0].all()


def test_a_chaser_flips_into_a_ball_ahead(simulator):
    state = begin(simulator)
    state.cars.position[:, 0, :2] = torch.tensor([0.0, -1000.0])
    state.cars.rotation[:, 0] = rotation(torch.tensor(math.pi / 2))
    state.cars.boost.zero_()
    simulator.place(torch.ones(5, dtype=torch.bool))
    for _ in range(60):
        simulator.step(Chaser().controls(state), ticks=8, delay=1)
        if (state.events.touches[:, 0] > 0).any():
            break
    assert state.cars.is_flipping[:, 0].all() and (state.cars.flip_torque[:, 0, 1] > 0.9).all(), "it flips forward"


@pytest.mark.parametrize("player", [Chaser(), Idle()])
def test_a_chaser_on_its_roof_gets_up_again(simulator, player):
    """An idle player does not, so it is not the physics alone."""
    state = begin(simulator, Turtle())
    up = torch.zeros_like(state.cars.on_ground)
    for _ in range(60):
        simulator.step(player.controls(state), ticks=8, delay=1)
        up |= state.cars.on_ground
    assert up.all() if isinstance(player, Chaser) else not up.any()


@pytest.mark.parametrize(("player", "goes"), [(Chaser(), -1.0), (Defender(), 1.0)])
def test_a_defender_gets_behind_the_ball_before_it_hits_it(simulator, player, goes):
    """The ball lies between a car and its own goal: a chaser drives it in, a defender goes past it and hits it away."""
    state = begin(simulator)
    state.ball.position.copy_(torch.tensor([0.0, -1500.0, 93.15]))
    state.cars.position[:, 0, :2] = torch.tensor([300.0, 1000.0])
    state.cars.position[:, 1, :2] = torch.tensor([3500.0, 4000.0])
    simulator.place(torch.ones(5, dtype=torch.bool))
    touched = torch.zeros(5, dtype=torch.bool)
    velocity = torch.zeros(5)
    for _ in range(200):
        controls = player.controls(state)
        controls[:, 1].zero_()
        simulator.step(controls, ticks=8, delay=1)
        first = (state.events.touches[:, 0] > 0) & ~touched
        velocity = torch.where(first, state.ball.velocity[:, 1], velocity)
        touched |= first
    assert touched.all() and (goes * velocity > 200.0).all()
