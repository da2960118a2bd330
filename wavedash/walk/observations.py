"""What a robot sees: each class is a key of the dictionary that the policy gets.

Numbers are scaled to about 1. `noise` is a factor of the sensors' noise that Agarwal et al. 2022 measured: 0 is exact, 1 is as real.
"""
from __future__ import annotations

import gymnasium
import numpy as np
import torch
from torch import Tensor

from wavedash.walk.parts import Observation
from wavedash.walk.physics import Physics
from wavedash.walk.robot import HOME, KD, KP
from wavedash.walk.state import RobotState


class _Vector(Observation):
    """An observation of `size` numbers."""

    size: int

    def space(self) -> gymnasium.spaces.Box:
        return gymnasium.spaces.Box(-np.inf, np.inf, (self.size,), np.float32)

    def blurred(self, x: Tensor, deviation: float | Tensor) -> Tensor:
        """Adds normal noise."""
        return x + deviation * torch.randn(x.shape, generator=self.world.generator, device=x.device)


class Proprioception(_Vector):
    """What the robot feels: its rate of turning (gyroscope), the direction of gravity, angles and velocities of joints, its last
    action, and which feet are on the ground. It does not know its velocity: a policy with memory learns to estimate it."""

    size = 3 + 3 + 12 + 12 + 12 + 4

    def __init__(self, noise: float = 0.0) -> None:
        self.noise = float(noise)

    def bind(self, state: RobotState) -> None:
        super().bind(state)
        self.home = torch.tensor(HOME, device=state.device)
        deviations = [0.05] * 3 + [0.02] * 3 + [0.01] * 12 + [0.05] * 12
        self.deviation = self.noise * torch.tensor(deviations, device=state.device)
        self.scale = torch.tensor([0.25] * 3 + [1.0] * 3 + [1.0] * 12 + [0.05] * 12, device=state.device)

    def build(self, state: RobotState) -> Tensor:
        felt = torch.cat((state.angular_velocity, state.gravity, state.joint_position - self.home, state.joint_velocity), -1)
        if self.noise:
            felt = self.blurred(felt, self.deviation)
        return torch.cat((felt * self.scale, state.action, state.touching.float()), -1)


class Commands(_Vector):
    """What the robot is told: speed forward, and the rate of turning that leads to its direction."""

    size = 2

    def build(self, state: RobotState) -> Tensor:
        return state.command[:, ::2].clone()


class Privileged(_Vector):
    """What only a simulator knows: the trunk's velocity, its height above the ground, forces on the feet, and the robot's physics.
    For the critic (`policy.actor_keys` leaves it out)."""

    size = 3 + 1 + 4 + 1 + 3 + 1 + 12 + 2 + 1

    def build(self, state: RobotState) -> Tensor:
        world = self.world
        physics: Physics = world.physics
        height = state.position[:, 2:] - world.ground.height(state.tile, state.position[:, None, :2])
        return torch.cat((
            state.body_velocity, (height - 0.25) * 5.0, state.foot_force.norm(dim=-1) / 50.0, physics.payload[:, None] / 3.0,
            physics.offset * 10.0, physics.friction[:, None] - Physics.FRICTION, (physics.strength - 1.0) * 10.0,
            (physics.kp[:, None] - KP) / 5.0, (physics.kd[:, None] - KD) * 10.0, physics.delay[:, None] / 4.0), -1)
