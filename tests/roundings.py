"""How far a computation in floating point may be from the exact result: tolerances that follow from the arithmetic.

An addition, a multiplication, a division or a square root is exact but for one rounding: a relative error of at most u, the
unit roundoff, 2^-24 in float32. An elementary function (exp, tanh, log, sin) counts as four: vector libraries promise two
units in the last place. After n roundings in a row the error is at most gamma(n) = n u / (1 - n u), relative to the sum of
the sizes of all terms (Higham, Accuracy and Stability of Numerical Algorithms, lemma 3.1 and section 3.1). This holds in
whatever order a machine adds, with vectors of any width, with and without fused multiply-add, on one thread or many. A
tolerance that was measured on one machine holds on that machine only.

`torch.testing.assert_close` without tolerances allows 168 roundings of numbers of the order of 1: enough for anything short.

For numbers that pass through a whole network the sizes are tedious to write down. There `sway` measures how much the exact
result, computed in float64, moves when all inputs are moved by so many roundings.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

FUNCTION = 4
"""Roundings that an elementary function counts for."""


def unit(dtype: torch.dtype = torch.float32) -> float:
    """u: the greatest relative error of one rounding to nearest."""
    return torch.finfo(dtype).eps / 2


def gamma(roundings: float, dtype: torch.dtype = torch.float32) -> float:
    """The greatest relative error of so many roundings in a row."""
    assert roundings * unit(dtype) < 0.5, f"{roundings} roundings leave nothing of a number of type {dtype}"
    return roundings * unit(dtype) / (1 - roundings * unit(dtype))


def assert_rounded(found: Any, exact: Any, roundings: float, size: Any = None, dtype: torch.dtype = torch.float32,
                   what: object = "") -> None:
    """`found` equals `exact` up to so many roundings of `dtype` of numbers as large as `size`, which is the sum of the sizes of
    all terms, and by default that of `exact`."""
    exact = as_float64(exact)
    assert_within(found, exact, gamma(roundings, dtype) * np.abs(exact if size is None else as_float64(size)), what)


def assert_within(found: Any, exact: Any, bound: Any, what: object = "") -> None:
    """No number of `found` is further from that of `exact` than `bound` allows."""
    found, exact, bound = as_float64(found), as_float64(exact), as_float64(bound)
    assert found.shape == exact.shape, f"{what}: shape {found.shape}, not {exact.shape}"
    beyond = np.abs(found - exact) - bound
    if not (beyond <= 0).all():  # NaN too
        worst = np.unravel_index(np.argmax(np.where(np.isnan(beyond), np.inf, beyond)), beyond.shape)
        error, most = abs(found[worst] - exact[worst]), np.broadcast_to(bound, beyond.shape)[worst]
        where = list(map(int, worst))
        raise AssertionError(f"{what}{where}: {found[worst]:.9g} is {error:.3g} from {exact[worst]:.9g}, roundings explain "
                             f"{most:.3g}; {int((~(beyond <= 0)).sum())} of {beyond.size} numbers are too far off")


def assert_same_in_float64(found: Any, exact: Any, what: object = "") -> None:
    """Two computations in float64 agree: after a thousand operations, with a condition number of a thousand, the largest number
    has ten right digits. A mistake leaves none."""
    size = np.abs(as_float64(exact)).max(initial=0.0)
    assert_within(found, exact, 1000 * gamma(1000, torch.float64) * size, what)


def sway(compute: Callable[..., Any], inputs: Sequence[Any], roundings: float, draws: int = 4,
         dtype: torch.dtype = torch.float32) -> Any:
    """How far the results of `compute(*inputs)` move when every input number is moved by so many roundings, up or down at
    random: twice the largest move of all draws and all numbers of a tensor, plus so many roundings of its largest number, which
    is all that remains where a result depends on no input. Inputs and results are tensors, or dictionaries of tensors.

    `compute` works in float64. Rounding in the middle of a computation is no worse than as many roundings of its inputs: sums
    of products are backward stable. If a result jumps (a clip, a sign) within reach of the roundings, that shows too.
    """
    generator = torch.Generator().manual_seed(0)

    def moved(x: Any) -> Any:
        if isinstance(x, Mapping):
            return {name: moved(part) for name, part in x.items()}
        if not isinstance(x, Tensor) or not x.is_floating_point():
            return x
        signs = torch.randint(2, x.shape, generator=generator) * 2 - 1
        return (x.detach().double() * (1 + gamma(roundings, dtype) * signs)).requires_grad_(x.requires_grad)

    exact = compute(*map(_float64, inputs))
    moved_results = [compute(*map(moved, inputs)) for _ in range(draws)]

    def bound(exact: Any, drawn: Sequence[Any]) -> Any:
        if isinstance(exact, Mapping):
            return {name: bound(x, [each[name] for each in drawn]) for name, x in exact.items()}
        truth = as_float64(exact)
        furthest = max(np.abs(as_float64(x) - truth).max(initial=0.0) for x in drawn)
        return 2 * furthest + gamma(roundings, dtype) * np.abs(truth).max(initial=0.0)

    return bound(exact, moved_results)


def as_float64(x: Any) -> np.ndarray:
    return x.detach().cpu().double().numpy() if isinstance(x, Tensor) else np.asarray(x, np.float64)


def _float64(x: Any) -> Any:
    if isinstance(x, Mapping):
        return {name: _float64(part) for name, part in x.items()}
    return x.double() if isinstance(x, Tensor) and x.is_floating_point() else x
