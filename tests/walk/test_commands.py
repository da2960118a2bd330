"""Commands: what is drawn, for how long, and that a robot which is told to turn left turns left."""
from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.walk.robots import STILL, make_env
from wavedash.errors import UserError
from wavedash.walk.commands import Ahead, Commands, Curve, InPlace
from wavedash.walk.names import PARTS
from wavedash.walk.rewards import Progress, TrackTurning
from wavedash.walk.rotation import from_yaw, wrapped
from wavedash.walk.state import RobotState

MANY = 20_000
DEGREE = torch.pi / 180


def facing(yaw: float | Tensor, robots: int = MANY) -> RobotState:
    state = RobotState.zeros(robots)
    state.orientation.copy_(from_yaw(torch.as_tensor(yaw).expand(robots)))
    state.derive()
    return state


def given(state: RobotState, **commands: Any) -> Commands:
    part = Commands.named(commands, PARTS)
    part.bind(state)
    part.give(state, torch.ones(state.shape, dtype=torch.bool), torch.Generator().manual_seed(0))
    part.follow(state)
    return part


def assert_even(x: Tensor, low: float, high: float) -> None:
    """x is evenly distributed: by its ends, mean and deviation; the bounds are four standard errors."""
    width = high - low
    assert low <= float(x.min()) < low + 0.01 * width and high - 0.01 * width < float(x.max()) <= high
    error = 4 * width / 12**0.5 / len(x) ** 0.5
    assert abs(float(x.mean()) - (low + high) / 2) < error
    assert float(x.std()) == pytest.approx(width / 12**0.5, rel=0.03)


def test_each_command_is_drawn_from_its_range() -> None:
    state, generator = facing(0.0), torch.Generator().manual_seed(0)
    speed, turn = Ahead(speed=0.35, turn=10).draw(state, generator)
    assert (speed == torch.tensor(0.35)).all()
    assert_even(turn, -10 * DEGREE, 10 * DEGREE)
    speed, turn = Curve(slowest=0.2, fastest=0.75, turn=60).draw(state, generator)
    assert_even(speed, 0.2, 0.75)
    assert_even(turn, -60 * DEGREE, 60 * DEGREE)
    assert abs(float(torch.corrcoef(torch.stack((speed, turn)))[0, 1])) < 0.03, "speed and turn are independent"
    speed, turn = InPlace(turn=180).draw(state, generator)
    assert not speed.any()
    assert_even(turn, -torch.pi, torch.pi)


def test_commands_are_mixed_by_their_weights() -> None:
    state = facing(0.0)
    given(state, ahead={"weight": 3, "speed": 1.0}, curve={"weight": 1, "slowest": 2.0, "fastest": 3.0}, in_place=0)
    share = float((state.command[:, 0] == 1.0).float().mean())
    assert share == pytest.approx(0.75, abs=4 * (0.75 * 0.25 / MANY) ** 0.5)
    assert (state.command[:, 0] >= 1.0).all(), "one without weight is never drawn"


def test_only_robots_that_are_due_get_a_new_command() -> None:
    state = facing(0.3, 4)
    part = given(state, curve=1)
    before = state.command.clone(), state.heading.clone(), part.left.clone()
    part.left -= 5
    part.give(state, torch.tensor([False, True, False, True]), torch.Generator().manual_seed(1))
    for now, then in zip((state.command[:, 0], state.heading), (before[0][:, 0], before[1]), strict=True):
        assert (now == then).tolist() == [True, False, True, False]
    assert (part.left == before[2]).tolist() == [False, True, False, True]


@pytest.mark.parametrize("weight", [-1, float("nan"), float("inf"), "lots", True])
def test_a_command_needs_a_weight_that_is_one(weight: Any) -> None:
    with pytest.raises(UserError, match="command 'ahead' needs a weight of 0 or more"):
        Commands.named({"ahead": {"weight": weight}, "curve": 2}, PARTS)


def test_a_curve_from_fast_to_slow_is_refused() -> None:
    with pytest.raises(UserError, match=r"command 'curve' cannot be made with .*fastest must be 0.5 or more, not 0.3"):
        PARTS.make("command", "curve", {"slowest": 0.5, "fastest": 0.3})


@pytest.mark.parametrize("weights", [{}, {"ahead": 0}])
def test_commands_without_a_weight_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(UserError, match="at least one command with a weight above 0"):
        Commands.named(weights, PARTS)


def test_a_command_lasts_as_long_as_it_says() -> None:
    env = make_env(64, commands={"curve": 1}, command_seconds=0.2, endings={"time_out": {"seconds": 100}}, starts=STILL)
    env.reset(0)
    last = env.state.command[:, 0].clone()
    for step in range(1, 41):
        env.step(torch.zeros(64, 12))
        renewed = env.state.command[:, 0] != last
        assert renewed.all() if step % 10 == 0 else not renewed.any(), f"step {step}"
        last = env.state.command[:, 0].clone()


def test_an_episode_begins_with_a_command_of_its_own_which_lasts_in_full() -> None:
    env = make_env(16, commands={"curve": 1}, command_seconds=0.2, endings={"time_out": {"seconds": 0.12}}, starts=STILL)
    env.reset(0)
    last = env.state.command[:, 0].clone()
    for step in range(1, 31):
        env.step(torch.zeros(16, 12))
        renewed = env.state.command[:, 0] != last
        assert renewed.all() if step % 6 == 0 else not renewed.any(), "episodes of six steps never come to a second command"
        assert env.task.commands.left.tolist() == [10 - step % 6] * 16
        last = env.state.command[:, 0].clone()


def test_the_rate_of_turning_leads_to_the_direction_the_short_way() -> None:
    yaw = torch.tensor([0.0, 0.0, 3.0, -3.0, 1.0])
    state = facing(yaw, 5)
    part = given(state, in_place={"turn": 0.0})
    state.heading.copy_(torch.tensor([0.5, -0.5, -3.0, 3.0, 1.0]))
    part.follow(state)
    assert state.command[:, 2].sign().tolist() == [1.0, -1.0, 1.0, -1.0, 0.0], "left is positive, across half a turn too"
    torch.testing.assert_close(state.command[:, 2], 0.8 * wrapped(state.heading - yaw))
    state.heading.copy_(wrapped(yaw + 3.1))
    part.follow(state)
    torch.testing.assert_close(state.command[:, 2], torch.full((5,), 0.8), msg="and it is limited")


def test_who_turns_at_the_commanded_rate_comes_to_face_the_direction() -> None:
    state = facing(0.0, 3)
    part = given(state, in_place={"turn": 0.0})
    state.heading.copy_(torch.tensor([2.5, -2.5, 0.4]))
    yaw = torch.zeros(3)
    for _ in range(500):
        part.follow(state)
        yaw = yaw + 0.02 * state.command[:, 2]
        state.orientation.copy_(from_yaw(yaw))
        state.derive()
    torch.testing.assert_close(state.yaw, state.heading, rtol=0, atol=0.02)


def test_a_robot_that_turns_left_has_a_positive_rate_and_is_paid_for_it() -> None:
    """In physics: the trunk is turned counter-clockwise, seen from above; yaw grows, and the gyroscope is positive."""
    env = make_env(2, commands={"in_place": {"turn": 0.0}}, starts=STILL)
    env.reset(0)
    env.state.heading.fill_(0.8)
    env.task.commands.follow(env.state)
    assert (env.state.command[:, 2] > 0.5).all()
    env.simulator.qvel[:, 5] = torch.tensor([0.6, -0.6])  # type: ignore[attr-defined]
    env.simulator.qpos[:, 2] = 0.5  # type: ignore[attr-defined]
    env.step(torch.zeros(2, 12))
    state = env.state
    assert state.yaw[0] > 0 > state.yaw[1] and state.angular_velocity[0, 2] > 0 > state.angular_velocity[1, 2]
    for reward in (TrackTurning(), Progress()):
        paid = reward(state, state, None)
        assert paid[0] > paid[1]
