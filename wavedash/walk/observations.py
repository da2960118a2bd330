"""What a robot sees: each class is a key of the dictionary that the policy gets.

Numbers are scaled to about 1. `noise` is a factor of the sensors' noise that Agarwal et al. 2022 measured: 0 is exact, 1 is as
real.
"""
from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from wavedash.walk.limits import within
from wavedash.walk.parts import Observation
from wavedash.walk.physics import Physics
from wavedash.walk.robot import FOOT, HOME, KD, KP, LEGS, STANDING, TOUCH
from wavedash.walk.sensors.camera import DepthCamera
from wavedash.walk.sensors.depth import Optics
from wavedash.walk.sensors.scan import Scan, dense_grid, grid, parkour_grid
from wavedash.walk.sensors.tiles import Tiles
from wavedash.walk.state import RobotState

TURNING, JOINT_SPEED, HEIGHT = 0.25, 0.05, 4.0
"""Factors that make rates of turning (rad/s), velocities of joints (rad/s) and heights (m) about 1"""
STEP_HEIGHT = 0.25
"""m: ground that is higher or lower than this is nothing for a foot to step on"""


class _Vector(Observation):
    """An observation of `size` numbers."""

    size: int

    def space(self) -> gymnasium.spaces.Box:
        return gymnasium.spaces.Box(-np.inf, np.inf, (self.size,), np.float32)

    def blurred(self, x: Tensor, deviation: float | Tensor) -> Tensor:
        """Adds normal noise."""
        return x + deviation * torch.randn(x.shape, generator=self.context.generator, device=x.device)


class Proprioception(_Vector):
    """What the robot feels: its rate of turning (gyroscope), the direction of gravity, angles and velocities of joints, its
    last action, and which feet are on the ground. It does not know its velocity: a policy with memory learns to estimate it."""

    size = 3 + 3 + 12 + 12 + 12 + 4

    def __init__(self, noise: float = 0.0) -> None:
        self.noise = within("noise", noise)

    def bind(self, state: RobotState) -> None:
        super().bind(state)
        self.home = torch.tensor(HOME, device=state.device)
        deviations = [0.05] * 3 + [0.02] * 3 + [0.01] * 12 + [0.05] * 12
        self.deviation = self.noise * torch.tensor(deviations, device=state.device)
        self.scale = torch.tensor([TURNING] * 3 + [1.0] * 3 + [1.0] * 12 + [JOINT_SPEED] * 12, device=state.device)

    def build(self, state: RobotState) -> Tensor:
        felt = torch.cat((state.angular_velocity, state.gravity, state.joint_position - self.home, state.joint_velocity), -1)
        if self.noise:
            felt = self.blurred(felt, self.deviation)
        return torch.cat((felt * self.scale, state.action, state.touching.float()), -1)

    def describe(self) -> dict[str, Any]:
        return {"shape": [self.size], "parts": [
            {"reading": "angular_velocity", "size": 3, "scale": TURNING, "unit": "rad/s",
             "about": "of the trunk about its x (forward), y (left) and z (up) axis: a gyroscope"},
            {"reading": "gravity", "size": 3, "scale": 1.0,
             "about": "its direction in the trunk's frame: 0, 0, -1 if it is upright"},
            {"reading": "joint_position", "size": 12, "subtract": list(HOME), "scale": 1.0, "unit": "rad", "order": "joints"},
            {"reading": "joint_velocity", "size": 12, "scale": JOINT_SPEED, "unit": "rad/s", "order": "joints"},
            {"reading": "last_action", "size": 12, "scale": 1.0, "order": "joints",
             "about": "the policy's last output `action`; zeros at the beginning"},
            {"reading": "touching", "size": 4, "scale": 1.0, "order": "legs",
             "about": f"1 if the ground pushes the foot up with more than {TOUCH:g} N, else 0; zeros at the beginning"}]}


class Commands(_Vector):
    """What the robot is told: speed forward, and the rate of turning that leads to its direction."""

    size = 2

    def build(self, state: RobotState) -> Tensor:
        return state.command[:, ::2].clone()

    def describe(self) -> dict[str, Any]:
        return {"shape": [self.size], "parts": [
            {"reading": "speed", "size": 1, "scale": 1.0, "unit": "m/s", "about": "wanted forward"},
            {"reading": "turning", "size": 1, "scale": 1.0, "unit": "rad/s",
             "about": "wanted to the left; `heading` says how it follows from a direction to turn to"}]}


class Privileged(_Vector):
    """What only a simulator knows: the trunk's velocity, its height above the ground, forces on the feet, and the robot's
    physics. For the critic (`policy.actor_keys` leaves it out)."""

    size = 3 + 1 + 4 + 1 + 3 + 1 + 12 + 2 + 1

    def build(self, state: RobotState) -> Tensor:
        context = self.context
        physics: Physics = context.physics
        height = state.position[:, 2:] - context.ground.height(state.tile, state.position[:, None, :2])
        return torch.cat((
            state.body_velocity, (height - 0.25) * 5.0, state.foot_force.norm(dim=-1) / 50.0, physics.payload[:, None] / 3.0,
            physics.offset * 10.0, physics.friction[:, None] - Physics.FRICTION, (physics.strength - 1.0) * 10.0,
            (physics.kp[:, None] - KP) / 5.0, (physics.kd[:, None] - KD) * 10.0, physics.delay[:, None] / 4.0), -1)


class Scandots(_Vector):
    """Heights of the ground at points around the robot, which turn with it: how far each is below the height of the trunk's
    centre when the robot stands, positive for higher ground. The points are 0.15 m apart, and reach 1.2 m ahead, 0.45 m behind
    and 0.75 m to the sides. `dense`: they are 0.075 m apart, and reach 0.9 m ahead and 0.375 m elsewhere, so that cracks cannot
    hide between them.

    `noise`: a factor of 7 cm, by which each height is wrong in each step. `drift`: m, by which a whole map is wrong over an
    episode, as maps of robots are.
    """

    drifted: Tensor
    """[E]"""

    def __init__(self, noise: float = 0.0, drift: float = 0.0, dense: bool = False) -> None:
        self.noise, self.drift = within("noise", noise), within("drift", drift)
        self.offsets = dense_grid() if dense else parkour_grid()
        self.size = len(self.offsets)

    def bind(self, state: RobotState) -> None:
        super().bind(state)
        ground = self.context.ground
        self.scan = Scan(Tiles(ground.heights, ground.resolution), state.shape[0], self.offsets)
        self.register_buffer("drifted", torch.zeros(state.shape, device=state.device))

    def begin(self, state: RobotState, mask: Tensor) -> None:
        if self.drift:
            drawn = self.drift * torch.randn(state.shape, generator=self.context.generator, device=state.device)
            self.drifted.copy_(torch.where(mask, drawn, self.drifted))

    def build(self, state: RobotState) -> Tensor:
        heights = self.scan(state.position, state.orientation, state.tile)
        seen = heights - (state.position[:, 2:] - STANDING) + self.drifted.unsqueeze(-1)
        if self.noise:
            seen = self.blurred(seen, 0.07 * self.noise)
        return seen.clamp(-1.0, 1.0) * HEIGHT

    def describe(self) -> dict[str, Any]:
        return {"shape": [self.size], "parts": [
            {"reading": "heights", "size": self.size, "subtract": -STANDING, "clip": [-1.0, 1.0], "scale": HEIGHT, "unit": "m",
             "points": [[round(x, 6) for x in point] for point in self.offsets.tolist()],
             "about": "of the ground relative to the trunk's centre, below points ahead (x) and to the left (y) of it, m, "
                      "which turn with the trunk's yaw and do not tilt with it"}]}


class FootScan(_Vector):
    """Heights of the ground around each foot, relative to its sole: `points` x `points` of them, up to `reach` m ahead, behind
    and to the sides, turned as the trunk. Scandots lie around the trunk; to know by them what a foot would step on, a policy
    has to work out first where its foot is. Miki et al. 2022 have samples around the feet too. Raising `reach` shows where the
    next steps may go, raising `points` shows smaller stones.

    `noise`: a factor of 7 cm, by which each height is wrong in each step.
    """

    def __init__(self, noise: float = 0.0, reach: float = 0.15, points: int = 5) -> None:
        self.noise, reach = within("noise", noise), within("reach", reach)
        if points != int(points) or points < 2:
            raise ValueError(f"points is a whole number of 2 or more, not {points!r}")
        self.offsets = grid(*torch.linspace(-reach, reach, int(points)).expand(2, -1))
        self.size = len(LEGS) * len(self.offsets)

    def bind(self, state: RobotState) -> None:
        super().bind(state)
        ground = self.context.ground
        self.scan = Scan(Tiles(ground.heights, ground.resolution), len(LEGS) * state.shape[0], self.offsets)

    def build(self, state: RobotState) -> Tensor:
        feet = state.foot_position.reshape(-1, 3)
        heights = self.scan(feet, *(x.repeat_interleave(len(LEGS), 0) for x in (state.orientation, state.tile)))
        seen = (heights - (feet[:, 2:] - FOOT)).view(len(state.memory), -1)  # [E, 4 P]
        if self.noise:
            seen = self.blurred(seen, 0.07 * self.noise)
        return seen.clamp(-STEP_HEIGHT, STEP_HEIGHT) * HEIGHT

    def describe(self) -> dict[str, Any]:
        return {"shape": [self.size], "parts": [
            {"reading": "heights_at_feet", "size": self.size, "subtract": -FOOT, "clip": [-STEP_HEIGHT, STEP_HEIGHT],
             "scale": HEIGHT, "unit": "m", "order": "legs",
             "points": [[round(x, 6) for x in point] for point in self.offsets.tolist()],
             "about": "of the ground relative to a foot's centre, below points ahead (x) and to the left (y) of it, m, which "
                      "turn with the trunk's yaw; all points of the first foot, then those of the next"}]}


class Depth(Observation):
    """The image of a depth camera in front of the trunk, [1, 58, 87], which comes every 80 to 120 ms and is 20 to 60 ms old: 0
    is near, 1 is 2 m away or nothing.

    `noise`: a factor of 2 cm of normal noise and of 1 % of pixels that are missing. `period`, `latency`: steps between images,
    and from taking an image to seeing it, each drawn between two numbers.
    """

    def __init__(self, noise: float = 0.0, pitch: float = 30.0, period: tuple[int, int] = (4, 6),
                 latency: tuple[int, int] = (1, 3)) -> None:
        self.optics = Optics(pitch=within("pitch", pitch, -90.0, 90.0), noise=0.02 * float(noise), dropout=0.01 * float(noise))
        self.period, self.latency = (int(period[0]), int(period[1])), (int(latency[0]), int(latency[1]))

    def space(self) -> gymnasium.spaces.Box:
        return gymnasium.spaces.Box(0.0, 1.0, (1, self.optics.rows, self.optics.columns), np.float32)

    def bind(self, state: RobotState) -> None:
        super().bind(state)
        ground = self.context.ground
        tiles = Tiles(ground.heights, ground.resolution)
        self.camera = DepthCamera(tiles, state.shape[0], self.optics, self.period, self.latency)

    def renew(self, state: RobotState) -> None:
        self.camera.step(state.position, state.orientation, state.tile, self.context.generator)

    def begin(self, state: RobotState, mask: Tensor) -> None:
        self.camera.restart(mask, state.position, state.orientation, state.tile, self.context.generator)

    def build(self, state: RobotState) -> Tensor:
        return (self.camera.images / self.optics.far).unsqueeze(1)

    def describe(self) -> dict[str, Any]:
        optics = self.optics
        return {"shape": list(self.space().shape), "parts": [
            {"reading": "depth", "size": optics.rows * optics.columns, "scale": 1.0 / optics.far, "unit": "m",
             "rows": optics.rows, "columns": optics.columns, "field_of_view": optics.field_of_view, "far": optics.far,
             "position": list(optics.position), "pitch": optics.pitch, "steps_between_images": list(self.period),
             "steps_of_latency": list(self.latency),
             "about": "along the optical axis of a camera at `position` in the trunk's frame, m, that looks ahead and `pitch` "
                      "degrees down; its horizontal field of view is in degrees; row 0 is the top, column 0 the left; `far` "
                      "where nothing is nearer. An image comes every so many steps and is so many steps old, each between the "
                      "two numbers"}]}
