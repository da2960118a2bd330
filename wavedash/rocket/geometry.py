"""Vectors and rotations, batched over any leading axes."""
from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize


def vector(x: Tensor | float, y: Tensor | float, z: Tensor | float) -> Tensor:
    """Vectors [..., 3] with coordinates [...], at least one of which is a tensor."""
    zero = torch.zeros_like(x + y + z)  # type: ignore[arg-type]
    return torch.stack([zero + x, zero + y, zero + z], -1)


def rotation(yaw: Tensor | float, pitch: Tensor | float = 0.0, roll: Tensor | float = 0.0) -> Tensor:
    """Rotations [..., 3, 3] with the columns forward, right, up, for angles [...] in radians, at least one of which is a
    tensor.

    Yaw turns from +X toward +Y, pitch lifts the nose, roll lowers the right side. As in the game, roll is applied first and yaw
    last."""
    angles = vector(yaw, pitch, roll)
    sy, sp, sr = angles.sin().unbind(-1)
    cy, cp, cr = angles.cos().unbind(-1)
    forward = torch.stack([cp * cy, cp * sy, sp], -1)
    right = torch.stack([cy * sp * sr - cr * sy, sy * sp * sr + cr * cy, -cp * sr], -1)
    up = torch.stack([-cr * cy * sp - sr * sy, -cr * sy * sp + sr * cy, cp * cr], -1)
    return torch.stack([forward, right, up], -1)


def look(forward: Tensor, up: Tensor) -> Tensor:
    """Rotations [..., 3, 3] whose nose points along `forward` [..., 3] exactly, and whose roof points along `up` [..., 3] as
    nearly as that allows. The two must not be parallel."""
    forward = normalize(forward, dim=-1)
    right = normalize(torch.linalg.cross(up, forward), dim=-1)
    return torch.stack([forward, right, torch.linalg.cross(forward, right)], -1)
