"""Is every number of an array finite? Asked about each block of observations and rewards, so it has to be quick."""
from __future__ import annotations

import math

import numpy as np

from wavedash.envs.host import Array


def all_finite(array: Array) -> bool:
    """A sum of squares is finite only if every number is; a sum that is not (huge numbers overflow it) is looked at closely."""
    return math.isfinite(np.vdot(array, array)) or bool(np.isfinite(array).all())


def first_not_finite(array: Array) -> tuple[int, ...]:
    """Its index."""
    return tuple(np.argwhere(~np.isfinite(array))[0].tolist())
