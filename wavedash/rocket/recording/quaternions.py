"""Rotation matrices as quaternions x, y, z, w and back, in numpy."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


@np.errstate(invalid="ignore", divide="ignore", over="ignore")  # a state after a fault holds anything
def quaternion_of(matrix: Floats) -> NDArray[np.float64]:
    """[..., 4] unit quaternions of rotation matrices [..., 3, 3], with w >= 0. What is no rotation becomes none: 0, 0, 0, 1.

    Shepperd's method: of 4 x^2, 4 y^2, 4 z^2 and 4 w^2, which follow from the diagonal, the largest is at least 1; its root is
    exact at every angle, and the other three follow from sums and differences of the elements across the diagonal."""
    m = np.asarray(matrix, np.float64)
    d0, d1, d2 = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    squares = np.stack([1 + d0 - d1 - d2, 1 - d0 + d1 - d2, 1 - d0 - d1 + d2, 1 + d0 + d1 + d2], -1)
    wx, wy, wz = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    xy, xz, yz = m[..., 1, 0] + m[..., 0, 1], m[..., 0, 2] + m[..., 2, 0], m[..., 2, 1] + m[..., 1, 2]
    rows = np.stack([  # 4 q q^T: every row is q times four times one of its elements
        np.stack([squares[..., 0], xy, xz, wx], -1), np.stack([xy, squares[..., 1], yz, wy], -1),
        np.stack([xz, yz, squares[..., 2], wz], -1), np.stack([wx, wy, wz, squares[..., 3]], -1)], -2)
    largest = np.nan_to_num(squares, nan=-np.inf).argmax(-1)[..., None, None]
    q = np.take_along_axis(rows, largest, -2)[..., 0, :]
    length = np.linalg.norm(q, axis=-1, keepdims=True)
    usable = np.isfinite(length) & (length > 0.5)
    q = np.where(usable, q / length, [0.0, 0.0, 0.0, 1.0])
    return np.where(q[..., 3:] < 0, -q, q)


def matrix_of(quaternion: Floats) -> NDArray[np.float64]:
    """[..., 3, 3] rotation matrices of quaternions [..., 4], which need not be of length 1."""
    q = np.asarray(quaternion, np.float64)
    x, y, z, w = np.moveaxis(q / np.linalg.norm(q, axis=-1, keepdims=True), -1, 0)
    return np.stack([
        np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], -1),
        np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], -1),
        np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1)], -2)
