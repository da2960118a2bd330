"""Vectors and rotations, batched over any leading axes."""
from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize


def vector(x: Tensor | float, y: Tensor | float, z: Tensor | float) -> Tensor:
    """[..., 3] of coordinates [...], at least one of them a tensor."""
    zero = torch.zeros_like(x + y + z)  # type: ignore[arg-type]
    return torch.stack([zero + x, zero + y, zero + z], -1)


def rotation(yaw: Tensor | float, pitch: Tensor | float = 0.0, roll: Tensor | float = 0.0) -> Tensor:
    """[..., 3, 3] with the columns forward, right, up, of angles [...] in radians, at least one of them a tensor.

    Yaw turns from +X toward +Y, pitch lifts the nose, roll lowers the right side. The game's order: roll first, yaw last."""
    angles = vector(yaw, pitch, roll)
    sy, sp, sr = angles.sin().unbind(-1)
    cy, cp, cr = angles.cos().unbind(-1)
    forward = torch.stack([cp * cy, cp * sy, sp], -1)
    right = torch.stack([cy * sp * sr - cr * sy, sy * sp * sr + cr * cy, -cp * sr], -1)
    up = torch.stack([-cr * cy * sp - sr * sy, -cr * sy * sp + sr * cy, cp * cr], -1)
    return torch.stack([forward, right, up], -1)


def look(forward: Tensor, up: Tensor) -> Tensor:
    """[..., 3, 3]: nose along `forward` [..., 3] exactly, roof as near to `up` [..., 3] as that allows (not parallel to it)."""
    forward = normalize(forward, dim=-1)
    right = normalize(torch.linalg.cross(up, forward), dim=-1)
    return torch.stack([forward, right, torch.linalg.cross(forward, right)], -1)
