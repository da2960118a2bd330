"""Rotations against MuJoCo's own functions."""
from __future__ import annotations

import mujoco
import numpy as np
import torch
from torch import Tensor

from tests.roundings import assert_rounded
from wavedash.walk.rotation import down_of, from_yaw, rotate, rotate_back, wrapped, yaw_of

GENERATOR = torch.Generator().manual_seed(0)
Q = torch.nn.functional.normalize(torch.randn(50, 4, generator=GENERATOR, dtype=torch.float64), dim=-1)
V = torch.randn(50, 3, generator=GENERATOR, dtype=torch.float64)


def by_mujoco(q: Tensor, v: Tensor, back: bool = False) -> Tensor:
    found = np.zeros((len(q), 3))
    for row, quaternion, vector in zip(found, q.numpy(), v.numpy(), strict=True):
        turn = np.zeros(4)
        mujoco.mju_negQuat(turn, quaternion)
        mujoco.mju_rotVecQuat(row, vector, turn if back else quaternion)
    return torch.from_numpy(found)


def test_vectors_turn_into_the_world_and_back() -> None:
    for turned, back in ((rotate(Q, V), False), (rotate_back(Q, V), True)):
        assert_rounded(turned, by_mujoco(Q, V, back), 60, V.norm(dim=-1, keepdim=True).expand(50, 3), torch.float64)
    assert not torch.allclose(rotate(Q, V), rotate_back(Q, V)), "the control: both directions differ"


def test_down_is_where_gravity_pulls_to() -> None:
    down = torch.tensor([[0.0, 0.0, -1.0]], dtype=torch.float64).expand(50, 3)
    torch.testing.assert_close(down_of(Q), by_mujoco(Q, down, back=True))


def test_the_yaw_is_where_the_front_points_to() -> None:
    front = by_mujoco(Q, torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64).expand(50, 3))
    torch.testing.assert_close(yaw_of(Q), torch.atan2(front[:, 1], front[:, 0]))


def test_a_rotation_about_the_vertical_axis_has_its_yaw_and_is_that_of_mujoco() -> None:
    yaw = torch.linspace(-3.1, 3.1, 21, dtype=torch.float64)
    for q, angle in zip(from_yaw(yaw), yaw, strict=True):
        expected = np.zeros(4)
        mujoco.mju_axisAngle2Quat(expected, np.array([0.0, 0.0, 1.0]), float(angle))
        torch.testing.assert_close(q, torch.from_numpy(expected))
    torch.testing.assert_close(yaw_of(from_yaw(yaw)), yaw)


def test_angles_are_wrapped_to_half_a_turn() -> None:
    angle = torch.linspace(-20.0, 20.0, 401, dtype=torch.float64)
    found = wrapped(angle)
    assert float(found.abs().max()) <= torch.pi + 1e-12
    torch.testing.assert_close(torch.stack((found.cos(), found.sin())), torch.stack((angle.cos(), angle.sin())))
