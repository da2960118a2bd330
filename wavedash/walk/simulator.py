"""Simulator: robots in worlds of their own, stepped together. Two simulators implement it with the same model: `mujoco` on the
CPU and `mujoco_warp` on CUDA."""
from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from wavedash.saved import Saved
from wavedash.walk.physics import Physics
from wavedash.walk.state import RobotState
from wavedash.walk.terrain.ground import Ground


class Simulator(ABC):
    """E robots, each on its own tile. Tasks write the beginnings of episodes into `state`, and numbers into `physics`; `place`
    tells the simulator about it."""

    capturable: bool = False
    """Whether `step` and `place` may be captured in a CUDA graph: there is no host sync in them"""
    ground: Ground
    state: RobotState
    physics: Physics
    broken: Tensor
    """[E] bool: physics went wrong in the last step (numbers that are not finite, or absurdly large): the robot's state is
    meaningless, until it is placed"""

    @property
    def device(self) -> torch.device:
        return self.state.device

    @property
    def health(self) -> dict[str, int]:
        """Counters of trouble since the start, read once an iteration."""
        return {}

    @abstractmethod
    def step(self, target: Tensor) -> None:
        """Moves all robots on by `SUBSTEPS` ticks, with the motors pulling to the joint angles `target` [E, 12], which each
        robot gets after its `physics.delay`. The state is then that of the end; torques and forces are those of the last
        tick."""

    @abstractmethod
    def place(self, robots: Tensor) -> None:
        """Takes over tile, pose, velocities and physics of these robots [E] from `state` and `physics`, at rest otherwise, and
        fills in the rest of their state."""

    @abstractmethod
    def push(self, velocity: Tensor) -> None:
        """Changes the velocities of trunks by `velocity` [E, 3], in the world's frame."""

    @abstractmethod
    def set_bodies(self) -> None:
        """Takes over payloads and centres of mass from `physics`. Called when a run begins or is resumed."""

    @abstractmethod
    def save(self) -> dict[str, Tensor]:
        """Everything about physics that the next step depends on beside `state` and `physics`. The tensors are copies."""

    @abstractmethod
    def load(self, saved: Saved) -> None:
        """Goes on from what `save` returned; `state` and `physics` were written before."""

    def close(self) -> None:  # noqa: B027 (optional)
        """Releases threads and memory."""
