"""What robots are paid for, per second of their time. Penalties are negative: give them positive weights.

Sources: Agarwal et al. 2022 (`Progress`, `Work`, `FootJerk`, `FootDrag`, `Collision`, `Alive`) and legged_gym (the others)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from wavedash.tasks import rewards
from wavedash.walk.limits import within
from wavedash.walk.parts import Events, Reward
from wavedash.walk.robot import FOOT, HOME, JOINT_RANGES, MAX_TORQUE, STEP
from wavedash.walk.state import RobotState

NARROWEST = 1e-4
"""The least `width` of a reward that falls with the square of an error"""


class Rewards(rewards.Rewards):
    """The weighted sum of what robots are paid for: weights are per second, so that a step pays a fiftieth.

    `floor`: a step never pays less. With 0, as in legged_gym, a robot that is bad at everything has no reason to fall over
    soon."""

    settings = (*rewards.Rewards.settings, "floor")
    _least: Tensor

    def __init__(self, rewards: Sequence[tuple[str, rewards.Reward, float | None]], floor: float | None = None,
                 **options: Any) -> None:
        self.floor = floor
        self.register_buffer("_least", torch.zeros(()), persistent=False)
        super().__init__(rewards, **{"scale": STEP, **options})

    def spread(self, own: Tensor, state: RobotState) -> Tensor:
        return torch.maximum(own, self._least)

    def write_settings(self) -> None:
        super().write_settings()
        self._least.fill_(-torch.inf if self.floor is None else self.floor * STEP)


class Progress(Reward):
    """Walking and turning as commanded: speed wanted - |speed wanted - speed| - `turning` * |turning wanted - turning|. It pays
    at most the wanted speed. A typical weight is 7, the other rewards being penalties.

    `turning`: m/s that an error of 1 rad/s counts; 1 in Agarwal et al. 2022. A trunk that walks turns a little to and fro with
    every step, by 0.3 to 0.5 rad/s while it learns. With 1 that costs as much as walking pays, so standing still pays more, and
    a robot that sees steps and pits stops in front of them."""

    def __init__(self, turning: float = 1.0) -> None:
        self.turning = float(turning)

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        wanted, turning = state.command[:, 0], state.command[:, 2]
        off = (turning - state.angular_velocity[:, 2]).abs()
        return wanted - (wanted - state.body_velocity[:, 0]).abs() - self.turning * off


class TrackVelocity(Reward):
    """The velocity forward and sideways is as commanded: 1 if it is, falling with the square of the error; `width`: (m/s)^2,
    more pays for larger errors too. A typical weight is 1."""

    def __init__(self, width: float = 0.25) -> None:
        self.width = within("width", width, NARROWEST)

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        error = (state.command[:, :2] - state.body_velocity[:, :2]).square().sum(-1)
        return torch.exp(-error / self.width)


class TrackTurning(Reward):
    """The rate of turning is as commanded: 1 if it is; `width`: (rad/s)^2. A typical weight is 0.5."""

    def __init__(self, width: float = 0.25) -> None:
        self.width = within("width", width, NARROWEST)

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return torch.exp(-(state.command[:, 2] - state.angular_velocity[:, 2]).square() / self.width)


class Alive(Reward):
    """Always 1. A typical weight is 1; too much, and a robot that stands still is content."""

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return torch.ones(state.shape, device=state.device)


class Work(Reward):
    """Penalty: the power of all motors, W. A typical weight is 1e-3."""

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return -(state.torque * state.joint_velocity).abs().sum(-1)


class Torque(Reward):
    """Penalty: squares of torques, (N m)^2. A typical weight is 2e-4."""

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return -state.torque.square().sum(-1)


class TorqueLimit(Reward):
    """Penalty: by how much torques are above `share` of what the motors can do, N m. A typical weight is 0.1."""

    def __init__(self, share: float = 0.9) -> None:
        self.limit = float(share) * MAX_TORQUE

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return -(state.torque.abs() - self.limit).clamp(min=0.0).sum(-1)


class JointAcceleration(Reward):
    """Penalty: squares of how much joint velocities change, (rad/s^2)^2. A typical weight is 2.5e-7."""

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return -((state.joint_velocity - previous.joint_velocity) / STEP).square().sum(-1)


class ActionRate(Reward):
    """Penalty: squares of how much actions change from step to step. A typical weight is 0.01 to 0.1; more walks smoother."""

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return -(state.action - previous.action).square().sum(-1)


class FootJerk(Reward):
    """Penalty: how much the forces on the feet change from step to step, N. A typical weight is 1e-3."""

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return -(state.foot_force - previous.foot_force).norm(dim=-1).sum(-1)


class FootDrag(Reward):
    """Penalty: how fast feet slide while they are loaded, m/s. A typical weight is 0.05."""

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return -(state.foot_velocity[..., :2].norm(dim=-1) * state.touching).sum(-1)


class FootEdge(Reward):
    """Penalty: the number of feet that stand at an edge: within `near` m of them the ground is more than `drop` m below. A
    typical weight is 1; more keeps feet away from edges, also from those of stairs. It says which steps were dangerous long
    before a robot falls, as in extreme-parkour."""

    def __init__(self, near: float = 0.05, drop: float = 0.1) -> None:
        self.near, self.drop = float(near), float(drop)

    def bind(self, state: RobotState) -> None:
        super().bind(state)
        around = torch.tensor([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], device=state.device)
        self.around = self.near * around  # [5, 2]

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        feet = state.foot_position  # [E, 4, 3]
        points = feet[:, :, None, :2] + self.around  # [E, 4, 5, 2]
        ground = self.context.ground.height(state.tile, points.flatten(1, 2)).view(points.shape[:-1])
        below = feet[..., 2] - FOOT - ground.amin(-1)
        return -(state.touching & (below > self.drop)).float().sum(-1)


class FootPit(Reward):
    """Penalty: the number of feet that stand in a pit: in two of four directions, the ground `near` m away is more than `deep`
    m higher on both sides. A typical weight is 1. Where pits are shallow (`shallow_stones`), robots learn by it to step from
    stone to stone while a miss is no fall yet. On stairs and slopes one side is lower. By area, the pits between stones are
    found for the most part to level 6 of 9, and 7 % of the roughest ground are taken for pits."""

    def __init__(self, near: float = 0.2, deep: float = 0.04) -> None:
        self.near, self.deep = float(near), float(deep)

    def bind(self, state: RobotState) -> None:
        super().bind(state)
        angle = torch.arange(8, device=state.device) * (torch.pi / 4)
        self.around = self.near * torch.stack((angle.cos(), angle.sin()), -1)  # [8, 2]: the last four are opposite the first

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        feet = state.foot_position  # [E, 4, 3]
        points = feet[:, :, None, :2] + self.around  # [E, 4, 8, 2]
        ground = self.context.ground.height(state.tile, points.flatten(1, 2)).view(points.shape[:-1])
        sides = torch.minimum(ground[..., :4], ground[..., 4:]) - (feet[..., 2:] - FOOT)  # [E, 4, 4]: the lower side
        in_pit = (sides > self.deep).sum(-1) >= 2
        return -(state.touching & in_pit).float().sum(-1)


class Collision(Reward):
    """Penalty: the number of thighs and calves that touch the ground. A typical weight is 1."""

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return -((state.thigh_contact > 0).float() + (state.calf_contact > 0).float()).sum(-1)


class Bounce(Reward):
    """Penalty: the square of the trunk's velocity up and down, (m/s)^2. A typical weight is 2."""

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return -state.body_velocity[:, 2].square()


class Wobble(Reward):
    """Penalty: squares of how fast the trunk rolls and pitches, (rad/s)^2. A typical weight is 0.05."""

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return -state.angular_velocity[:, :2].square().sum(-1)


class Tilt(Reward):
    """Penalty: the square of the sine of the trunk's tilt. A typical weight is 1 on flat ground; on stairs a trunk must
    tilt."""

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return -state.gravity[:, :2].square().sum(-1)


class AirTime(Reward):
    """Long steps: for every foot that comes down, how long it was in the air beyond `least` seconds, if the robot is to move.
    It is paid once a step, so weights are as if a second passed. A typical weight is 50."""

    sparse = True

    def __init__(self, least: float = 0.25, most: float = 0.5) -> None:
        self.least, self.most = float(least), float(most)

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        beyond = (events.flight.clamp(max=self.most) - self.least) * events.landed
        moving = (state.command[:, 0] > 0.1) | (state.command[:, 2].abs() > 0.1)
        return beyond.sum(-1) * moving


class JointLimits(Reward):
    """Penalty: by how much joints are beyond `share` of the way from their middle to their limits, rad. A typical weight is
    10."""

    def __init__(self, share: float = 0.9) -> None:
        self.share = float(share)

    def bind(self, state: RobotState) -> None:
        super().bind(state)
        low, high = torch.tensor(JOINT_RANGES, device=state.device).unbind(-1)
        self.middle, self.reach = (low + high) / 2, self.share * (high - low) / 2

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return -((state.joint_position - self.middle).abs() - self.reach).clamp(min=0.0).sum(-1)


class HomePose(Reward):
    """Penalty: squares of how far joints are from the standing pose, rad^2. A typical weight is 0.05; more walks stiffer."""

    def bind(self, state: RobotState) -> None:
        super().bind(state)
        self.home = torch.tensor(HOME, device=state.device)

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return -(state.joint_position - self.home).square().sum(-1)
