"""What robots are paid for: values by hand on made-up states."""
from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.roundings import assert_rounded
from tests.walk.robots import made_up
from wavedash.config_file import load_config
from wavedash.errors import UserError
from wavedash.walk.names import PARTS
from wavedash.walk.parts import Context, Events
from wavedash.walk.physics import Physics
from wavedash.walk.rewards import Rewards
from wavedash.walk.robot import FOOT, HOME, JOINT_RANGES, STEP
from wavedash.walk.state import RobotState
from wavedash.walk.terrain.ground import Ground
from wavedash.walk.terrain.layout import tile

ROBOTS = 5
STONES = Ground.named({"stones": 1}, levels=1, layout=tile(0.05), seed=0, hardest=0.5)


def scene() -> tuple[RobotState, RobotState, Events]:
    state, previous = made_up(ROBOTS, 0), made_up(ROBOTS, 1)
    state.torque.mul_(20.0)
    state.foot_force.mul_(30.0)
    generator = torch.Generator().manual_seed(2)
    landed = torch.rand(ROBOTS, 4, generator=generator) < 0.5
    return state, previous, Events(landed, torch.rand(ROBOTS, 4, generator=generator))


def by_hand(name: str, i: int, s: RobotState, p: RobotState, e: Events) -> float:
    """The reward of robot i, in plain Python."""
    def numbers(x: Tensor) -> Any:
        return x[i].tolist()

    command, v, w = numbers(s.command), numbers(s.body_velocity), numbers(s.angular_velocity)
    torque, dq, q = numbers(s.torque), numbers(s.joint_velocity), numbers(s.joint_position)
    touching = [force[2] > 1.0 for force in numbers(s.foot_force)]
    feet = range(4)
    if name == "progress":
        return command[0] - abs(command[0] - v[0]) - abs(command[2] - w[2])
    if name == "track_velocity":
        return math.exp(-((command[0] - v[0]) ** 2 + (command[1] - v[1]) ** 2) / 0.25)
    if name == "track_turning":
        return math.exp(-((command[2] - w[2]) ** 2) / 0.25)
    if name == "alive":
        return 1.0
    if name == "work":
        return -sum(abs(a * b) for a, b in zip(torque, dq, strict=True))
    if name == "torque":
        return -sum(a * a for a in torque)
    if name == "torque_limit":
        return -sum(max(0.0, abs(a) - 0.9 * 33.5) for a in torque)
    if name == "joint_acceleration":
        return -sum(((a - b) / STEP) ** 2 for a, b in zip(dq, numbers(p.joint_velocity), strict=True))
    if name == "action_rate":
        return -sum((a - b) ** 2 for a, b in zip(numbers(s.action), numbers(p.action), strict=True))
    if name == "foot_jerk":
        return -sum(math.dist(a, b) for a, b in zip(numbers(s.foot_force), numbers(p.foot_force), strict=True))
    if name == "foot_drag":
        return -sum(math.hypot(*numbers(s.foot_velocity)[foot][:2]) for foot in feet if touching[foot])
    if name == "foot_edge":
        return -float(sum(at_an_edge(numbers(s.foot_position)[foot]) for foot in feet if touching[foot]))
    if name == "foot_pit":
        return -float(sum(in_a_pit(numbers(s.foot_position)[foot]) for foot in feet if touching[foot]))
    if name == "collision":
        return -float(sum(x > 0 for x in numbers(s.thigh_contact) + numbers(s.calf_contact)))
    if name == "bounce":
        return -float(v[2] ** 2)
    if name == "wobble":
        return -float(w[0] ** 2 + w[1] ** 2)
    if name == "tilt":
        return -float(numbers(s.gravity)[0] ** 2 + numbers(s.gravity)[1] ** 2)
    if name == "air_time":
        moving = command[0] > 0.1 or abs(command[2]) > 0.1
        return moving * sum(min(numbers(e.flight)[foot], 0.5) - 0.25 for foot in feet if numbers(e.landed)[foot])
    if name == "joint_limits":
        over = [abs(a - (low + high) / 2) - 0.9 * (high - low) / 2 for a, (low, high) in zip(q, JOINT_RANGES, strict=True)]
        return -sum(max(0.0, x) for x in over)
    assert name == "home_pose"
    return -sum((a - b) ** 2 for a, b in zip(q, HOME, strict=True))


def at_an_edge(foot: list[float]) -> bool:
    """Whether the ground is more than 10 cm below the sole, under it or 5 cm off."""
    x, y, z = foot
    around = [(x, y), (x + 0.05, y), (x - 0.05, y), (x, y + 0.05), (x, y - 0.05)]
    ground = STONES.height(torch.zeros(1, dtype=torch.int64), torch.tensor([around]))[0]
    return any(z - 0.02 - height > 0.1 for height in ground.tolist())


def in_a_pit(foot: list[float]) -> bool:
    """Whether the ground is more than 4 cm above the sole on both sides of it, 20 cm off, in two of four directions."""
    x, y, z = foot
    walls = 0
    for degrees in (0, 45, 90, 135):
        dx, dy = 0.2 * math.cos(math.radians(degrees)), 0.2 * math.sin(math.radians(degrees))
        sides = torch.tensor([[(x + dx, y + dy), (x - dx, y - dy)]])
        walls += min(STONES.height(torch.zeros(1, dtype=torch.int64), sides)[0].tolist()) - (z - 0.02) > 0.04
    return walls >= 2


@pytest.mark.parametrize("name", sorted(PARTS.shipped("reward")))
def test_a_reward_pays_what_it_says(name: str) -> None:
    state, previous, events = scene()
    state.tile.zero_()
    state.foot_position[..., 2] = 0.02 + torch.rand(ROBOTS, 4, generator=torch.Generator().manual_seed(3)) * 0.2
    if name == "foot_pit":
        state.foot_position[..., 2] -= 0.15
    reward = PARTS.make("reward", name)
    reward.meet(Context(STONES, Physics(ROBOTS, "cpu"), torch.Generator()))
    reward.bind(state)
    paid = reward(state, previous, events)
    expected = [by_hand(name, i, state, previous, events) for i in range(ROBOTS)]
    size = max(map(abs, expected)) + 1.0
    assert_rounded(paid, expected, 100, [size] * ROBOTS)
    assert name == "alive" or len(set(expected)) > 1, "the control: robots differ"


def test_walking_with_a_swaying_trunk_pays_more_than_standing_still_in_walk_rough() -> None:
    """Robots walk at the wanted speed while their trunks turn to and fro by 0.5 rad/s. The control is the paper's weight of
    turning, by which it would cost what it brings."""
    state, previous, events = scene()
    state.command.zero_()
    state.command[:, 0] = 0.5
    state.body_velocity.zero_()
    state.angular_velocity.zero_()
    options = dict(load_config("walk-rough").env.walk.rewards["progress"])
    options.pop("weight")
    for turning, pays in ((options["turning"], True), (1.0, False)):
        reward = PARTS.make("reward", "progress", {"turning": turning})
        state.body_velocity[:, 0] = state.angular_velocity[:, 2] = 0.0
        standing = reward(state, previous, events)
        state.body_velocity[:, 0], state.angular_velocity[:, 2] = 0.5, 0.5
        assert ((reward(state, previous, events) > standing + 0.3) == pays).all()


@pytest.mark.parametrize(("kind", "level", "pits"), [
    ("shallow_stones", 0, True), ("shallow_stones", 5, True), ("gaps", 0, True),
    ("stairs_up", 9, False), ("slope", 9, False), ("flat", 0, False)])
def test_a_foot_is_in_a_pit_between_stones_and_in_gaps_and_not_on_stairs(kind: str, level: int, pits: bool) -> None:
    """A foot of every robot stands on the ground of a line across the tile."""
    ground = Ground.named({kind: 1}, levels=10, layout=tile(0.05), seed=0)
    state = RobotState.zeros(600)
    state.tile.fill_(level)
    state.foot_force[..., 2] = 10.0
    state.foot_position[..., 0] = torch.linspace(-3.9, 3.9, 600).unsqueeze(-1)
    state.foot_position[..., 1] = 0.11
    under = ground.height(state.tile, state.foot_position[:, :1, :2])
    state.foot_position[..., 2] = under + FOOT
    reward = PARTS.make("reward", "foot_pit")
    reward.meet(Context(ground, Physics(600, "cpu"), torch.Generator()))
    reward.bind(state)
    paid = reward(state, state, Events(state.touching, state.air_time))
    assert bool((paid < 0).any()) == pits
    if pits:
        lowest = under.squeeze(-1) < under.min() + 0.01
        assert (paid[lowest] == -4.0).float().mean() > 0.5 and (paid[~lowest & (under.squeeze(-1) == 0.0)] == 0.0).all()
    state.foot_force.zero_()
    assert not reward(state, state, Events(state.touching, state.air_time)).any(), "feet in the air"


def test_a_tilt_pays_the_square_of_its_sine() -> None:
    state = RobotState.zeros(1)
    angle = 0.3
    state.orientation.copy_(torch.tensor([[math.cos(angle / 2), 0.0, math.sin(angle / 2), 0.0]]))
    state.derive()
    tilt = PARTS.make("reward", "tilt")
    assert float(tilt(state, state, None)) == pytest.approx(-math.sin(angle) ** 2)


def test_weights_are_per_second() -> None:
    state, previous, events = scene()
    rewards = Rewards.named({"alive": 2.0, "bounce": 3.0}, PARTS)
    rewards.bind(state)
    expected = STEP * (2.0 - 3.0 * state.body_velocity[:, 2].square())
    torch.testing.assert_close(rewards(state, previous, events), expected)
    torch.testing.assert_close(sum(rewards.shares().values()), expected)


def test_a_step_pays_at_least_the_floor() -> None:
    state, previous, events = scene()
    plain, floored = (Rewards.named({"alive": 1.0, "torque": 0.01}, PARTS, floor=floor) for floor in (None, -0.5))
    for rewards in (plain, floored):
        rewards.bind(state)
    whole = plain(state, previous, events)
    assert (whole < -0.5 * STEP).any() and torch.equal(floored(state, previous, events), whole.clamp(min=-0.5 * STEP))
    assert torch.equal(floored.table, plain.table), "shares are what each would pay"


def test_a_reward_needs_a_known_name_and_options() -> None:
    with pytest.raises(UserError, match="did you mean 'torque'"):
        Rewards.named({"torqe": 1.0}, PARTS)
    with pytest.raises(UserError, match="has no option 'with'; did you mean 'width'"):
        Rewards.named({"track_velocity": {"weight": 1.0, "with": 2.0}}, PARTS)
