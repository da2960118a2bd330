"""Finds numbers that are not finite. Each block of observations and rewards is checked, so this has to be quick."""
from __future__ import annotations

import math

import numpy as np

from wavedash.envs.host import Array


def all_finite(array: Array) -> bool:
    """A sum of squares is finite only if every number is. Where it is not, huge numbers may have overflowed it, so each number
    is checked."""
    return math.isfinite(np.vdot(array, array)) or bool(np.isfinite(array).all())


def first_not_finite(array: Array) -> tuple[int, ...]:
    """The index of the first number that is not finite."""
    return tuple(np.argwhere(~np.isfinite(array))[0].tolist())
