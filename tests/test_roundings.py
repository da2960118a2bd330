"""The tolerances of the other tests allow what roundings do, and nothing more."""
from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.roundings import assert_rounded, assert_within, gamma, sway, unit


def test_the_unit_of_roundoff_is_that_of_the_type():
    assert (unit(), unit(torch.float64), unit(torch.bfloat16)) == (2.0**-24, 2.0**-53, 2.0**-8)
    assert gamma(3) == pytest.approx(3 * 2**-24, rel=1e-6)


def test_sums_in_every_order_are_within_their_roundings_and_one_term_less_is_not():
    terms = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    exact, size = terms.astype(np.float64).sum(), np.abs(terms).astype(np.float64).sum()
    backwards = np.float32(0)
    for x in terms[::-1]:
        backwards = np.float32(backwards + x)
    for found in (terms.sum(), np.add.accumulate(terms)[-1], backwards, torch.from_numpy(terms).sum()):
        assert_rounded(found, exact, len(terms), size)
    with pytest.raises(AssertionError, match="roundings explain"):
        assert_rounded(terms[:-1].sum(), exact, len(terms), size)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1.0 + 1e-3])
def test_a_number_that_is_too_far_off_is_named_with_its_place(wrong):
    found = np.ones((2, 3))
    found[1, 2] = wrong
    with pytest.raises(AssertionError, match=r"weights\[1, 2\].*1 of 6 numbers"):
        assert_within(found, np.ones((2, 3)), 1e-6, "weights")


def test_shapes_must_agree():
    with pytest.raises(AssertionError, match="shape"):
        assert_within(np.ones(3), np.ones((3, 1)), 1.0)


def test_sway_is_large_for_badly_conditioned_results():
    """A difference of large numbers loses their digits; the same difference of small ones does not."""
    def difference(a, b):
        return {"difference": a - b}

    large, small = torch.tensor([1e6, 2e6]), torch.tensor([1.0, 2.0])
    assert sway(difference, [large, large - 1], 1)["difference"] > 0.1
    assert sway(difference, [small, small - 1], 1)["difference"] < 1e-6


def test_sway_includes_a_jump_within_reach_and_no_other():
    def above(x):
        return (x > 1.0).double()

    assert sway(above, [torch.full((8,), 1.0)], 4) >= 2.0
    assert sway(above, [torch.full((8,), 1.001)], 4) < 1e-5
