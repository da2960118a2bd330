"""Rotations by unit quaternions (w, x, y, z), batched."""
from __future__ import annotations

import torch
from torch import Tensor


def rotate(q: Tensor, v: Tensor) -> Tensor:
    """[..., 3]: vectors of the body's frame in the world's, by quaternions [..., 4]."""
    w, u = q[..., :1], q[..., 1:]
    t = 2.0 * torch.linalg.cross(u, v)
    return v + w * t + torch.linalg.cross(u, t)


def rotate_back(q: Tensor, v: Tensor) -> Tensor:
    """[..., 3]: vectors of the world's frame in the body's."""
    w, u = q[..., :1], q[..., 1:]
    t = 2.0 * torch.linalg.cross(u, v)
    return v - w * t + torch.linalg.cross(u, t)


def down_of(q: Tensor) -> Tensor:
    """[..., 3]: the direction down, in the body's frame: 0, 0, -1 if it is upright."""
    w, x, y, z = q.unbind(-1)
    return torch.stack((2.0 * (w * y - x * z), -2.0 * (w * x + y * z), 2.0 * (x * x + y * y) - 1.0), -1)


def yaw_of(q: Tensor) -> Tensor:
    """[...]: the direction that the body's x axis points to in the plane, rad."""
    w, x, y, z = q.unbind(-1)
    return torch.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def from_yaw(yaw: Tensor) -> Tensor:
    """[..., 4]: rotations about the vertical axis."""
    zero = torch.zeros_like(yaw)
    return torch.stack((torch.cos(yaw / 2), zero, zero, torch.sin(yaw / 2)), -1)


def wrapped(angle: Tensor) -> Tensor:
    """[...]: the same angles between -pi and pi."""
    return torch.remainder(angle + torch.pi, 2 * torch.pi) - torch.pi
