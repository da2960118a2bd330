"""Rotations as RLBot writes them: pitch, yaw and roll in radians.

Yaw turns about the vertical axis from +x to +y, pitch lifts the nose, positive roll lowers the right side.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import atan2, cos, hypot, sin


def to_euler(rotation: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Pitch, yaw and roll of a rotation [3][3] whose columns are the forward, right and up axes.

    Straight up or down, where yaw and roll turn about the same axis, the roll is 0.
    """
    forward_x, forward_y, forward_z = rotation[0][0], rotation[1][0], rotation[2][0]
    flat = hypot(forward_x, forward_y)
    pitch = atan2(forward_z, flat)
    if flat == 0.0:
        return pitch, atan2(-rotation[0][1], rotation[1][1]), 0.0
    return pitch, atan2(forward_y, forward_x), atan2(-rotation[2][1], rotation[2][2])


def from_euler(pitch: float, yaw: float, roll: float) -> list[list[float]]:
    """The rotation [3][3] whose columns are the forward, right and up axes."""
    cp, sp, cy, sy, cr, sr = cos(pitch), sin(pitch), cos(yaw), sin(yaw), cos(roll), sin(roll)
    return [[cp * cy, cy * sp * sr - cr * sy, -cr * cy * sp - sr * sy],
            [cp * sy, sy * sp * sr + cr * cy, -cr * sy * sp + sr * cy],
            [sp, -cp * sr, cp * cr]]
