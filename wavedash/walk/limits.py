"""Checks of the numbers that parts are made with, and of the shapes of what they compute. An error about the former gets the
name of the part where parts are looked up by name."""
from __future__ import annotations

from math import inf, isfinite

from torch import Tensor

from wavedash.errors import UserError


def within(name: str, value: float, least: float = 0.0, most: float = inf) -> float:
    """Returns the number of an option. ValueError: it is not finite, or not between the two."""
    if not (least <= value <= most and isfinite(value)):
        between = f"{least:g} or more" if most == inf else f"from {least:g} to {most:g}"
        raise ValueError(f"{name} must be {between}, not {value!r}")
    return float(value)


def ordered(least: float = 0.0, **ends: float) -> tuple[float, float]:
    """Returns the two ends of a range. ValueError: one is not finite, or below `least`, or the first is above the second."""
    (low_name, low), (high_name, high) = ends.items()
    within(low_name, low, least)
    return float(low), within(high_name, high, low)


def shaped(what: str, x: Tensor, *shape: int) -> Tensor:
    """Returns what a part computed. UserError: it has another shape, and torch might spread the numbers of one robot over
    all."""
    if x.shape != shape:
        raise UserError(f"{what} has the shape {list(x.shape)}, and it must be {list(shape)}: {shape[0]} robots")
    return x
