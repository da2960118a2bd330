"""Robots for tests: environments and simulators by a few words, made-up states, and the mirror image of a state."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from wavedash.config import EnvConfig
from wavedash.walk.env import WalkEnv
from wavedash.walk.mujoco_batch import MujocoSimulator
from wavedash.walk.robot import HOME, STANDING
from wavedash.walk.state import RobotState
from wavedash.walk.terrain.ground import Ground
from wavedash.walk.terrain.layout import Layout

STILL = {"stand": {"turn": 0.0, "shift": 0.0, "joints": 0.0, "speed": 0.0}}
"""A start without any randomness: the robot stands at the tile's start and faces +x"""


def make_env(count: int = 8, **walk: Any) -> WalkEnv:
    """An environment with these options of `env.walk`."""
    return WalkEnv.configured(EnvConfig(walk=walk, count=count))


def make_ground(terrain: dict[str, Any] | None = None, levels: int = 1, layout: str = "tile") -> Ground:
    return Ground.named(terrain or {"flat": 1.0}, levels=levels, layout=Layout.named(layout, 0.1), seed=0)


def standing(robots: int = 1, ground: Ground | None = None, threads: int = 1) -> MujocoSimulator:
    """Robots that stand at the start, placed."""
    simulator = MujocoSimulator(ground or make_ground(), robots, threads)
    simulator.state.position[:, 2] = STANDING
    simulator.state.joint_position.copy_(torch.tensor(HOME).expand(robots, 12))
    simulator.set_bodies()
    simulator.place(torch.ones(robots, dtype=torch.bool))
    return simulator


def home(robots: int = 1) -> Tensor:
    """[E, 12]: the targets of robots that stand."""
    return torch.tensor(HOME).repeat(robots, 1)


def made_up(robots: int = 5, seed: int = 0) -> RobotState:
    """Robots with random numbers everywhere, upright or not."""
    generator = torch.Generator().manual_seed(seed)
    state = RobotState.zeros(robots)
    state.memory.copy_(torch.randn(state.memory.shape, generator=generator))
    state.orientation.div_(state.orientation.norm(dim=-1, keepdim=True))
    state.derive()
    return state


def mirrored_joints(joints: Tensor) -> Tensor:
    """[..., 12]: legs change sides; hips turn about the axis that lies in the mirror."""
    legs = joints.unflatten(-1, (4, 3))[..., [1, 0, 3, 2], :]
    mirrored: Tensor = (legs * torch.tensor([-1.0, 1.0, 1.0])).flatten(-2)
    return mirrored


def mirrored_pose(qpos: Tensor) -> Tensor:
    """[..., 19]: MuJoCo's positions, seen in a mirror at y = 0."""
    root = qpos[..., :7] * torch.tensor([1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0])
    return torch.cat((root, mirrored_joints(qpos[..., 7:])), -1)


def mirrored_motion(qvel: Tensor) -> Tensor:
    """[..., 18]: MuJoCo's velocities, seen in a mirror at y = 0; rotations are those of an axial vector."""
    root = qvel[..., :6] * torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    return torch.cat((root, mirrored_joints(qvel[..., 6:])), -1)
