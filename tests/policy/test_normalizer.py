"""Running statistics against numpy over everything that was seen."""
from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.roundings import assert_rounded
from wavedash.policy.normalizer import RunningMoments


def feed(moments: RunningMoments, batches: list[np.ndarray], weights: list[np.ndarray], per_commit: int) -> None:
    for k, (batch, weight) in enumerate(zip(batches, weights, strict=True), 1):
        x = torch.from_numpy(batch.astype(np.float32))
        moments.accumulate(moments.standardize(x), torch.from_numpy(weight.astype(np.float32)))
        if k % per_commit == 0:
            moments.commit()
    moments.commit()


def seen(batches: list[np.ndarray], weights: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([b[w > 0] for b, w in zip(batches, weights, strict=True)]).astype(np.float32).astype(np.float64)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 12), rows=st.integers(1, 20), per_commit=st.integers(1, 5),
       mean=st.sampled_from([0.0, -3.0, 1e3]), inactive=st.sampled_from([0.0, 0.5]))
def test_mean_and_variance_are_those_of_everything_that_counted(seed, count, rows, per_commit, mean, inactive):
    rng = np.random.default_rng(seed)
    weights = [(rng.random(rows) >= inactive).astype(float) for _ in range(count)]
    batches = [mean + 2.0 * rng.normal(size=(rows, 3)) + k for k in range(count)]
    for batch, weight in zip(batches, weights, strict=True):
        batch[weight == 0] = 1e4  # what an empty seat holds must not count
    moments = RunningMoments((3,))
    moments.centre_on(torch.full((1, 3), mean))
    feed(moments, batches, weights, per_commit)
    everything = seen(batches, weights)
    assert float(moments.count) == len(everything)
    if len(everything):
        # The sums are of distances from the current mean, of their squares, and of these divided by the deviation.
        far = np.abs(everything - mean).max(0) + 1.0
        assert_rounded(moments.mean, everything.mean(0), rows + 8, far)
        assert_rounded(moments.var, everything.var(0), 4 * (rows + 8), far**2)


def test_a_far_off_mean_keeps_its_digits():
    """At 1e6 the squares of float32 are off by 1e5: naive sums lose a variance of 1 entirely."""
    rng = np.random.default_rng(0)
    batches, weights = [1e6 + rng.normal(size=(64, 2)) for _ in range(50)], [np.ones(64)] * 50
    moments = RunningMoments((2,))
    moments.centre_on(torch.from_numpy(batches[0].astype(np.float32)))
    feed(moments, batches, weights, per_commit=10)
    everything = seen(batches, weights)
    far = np.abs(everything - 1e6).max(0) + 1.0
    assert_rounded(moments.mean, everything.mean(0), 64 + 8, far)
    assert_rounded(moments.var, everything.var(0), 4 * (64 + 8), far**2)
    as_float32 = everything.astype(np.float32)
    naive = (as_float32**2).mean(0) - as_float32.mean(0) ** 2
    assert (np.abs(naive - 1.0) > 0.5).all()
    out = moments.standardize(torch.from_numpy(as_float32)).numpy()
    np.testing.assert_allclose(out.std(0), 1.0, atol=0.01)


def test_a_feature_that_never_changes_becomes_zero():
    moments = RunningMoments((1,))
    x = np.full((7, 1), 0.1)
    moments.centre_on(torch.from_numpy(x.astype(np.float32)))
    feed(moments, [x] * 20, [np.ones(7)] * 20, per_commit=3)
    assert float(moments.standardize(torch.tensor([0.1]))) == pytest.approx(0.0, abs=1e-3)


def test_statistics_do_not_change_until_they_are_committed():
    moments = RunningMoments((2,))
    x = torch.randn(30, 2) * 5 + 3
    before = moments.standardize(x)
    moments.accumulate(before, torch.ones(30))
    assert torch.equal(moments.standardize(x), before)
    moments.commit()
    assert not torch.equal(moments.standardize(x), before)


def test_an_empty_batch_changes_nothing():
    moments = RunningMoments((2,))
    feed(moments, [np.random.default_rng(0).normal(size=(9, 2))], [np.ones(9)], 1)
    before = {name: x.clone() for name, x in moments.state_dict().items()}
    moments.accumulate(torch.full((4, 2), 77.0), torch.zeros(4))
    moments.commit()
    moments.commit()
    assert all(torch.equal(x, before[name]) for name, x in moments.state_dict().items())


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_number_that_is_not_finite_is_left_out_of_the_statistics_once(bad):
    rng = np.random.default_rng(0)
    good = rng.normal(size=(200, 2)) * 3
    moments = RunningMoments((2,))
    feed(moments, [good[:100]], [np.ones(100)], 1)
    before = moments.mean[0].clone()
    x = torch.from_numpy(good[100:].astype(np.float32))
    x[5, 0] = bad
    moments.accumulate(moments.standardize(x), torch.ones(100))
    moments.commit()
    assert moments.mean[0] == before and torch.isfinite(moments.scale).all()
    assert_rounded(moments.mean[1], good[:, 1].mean(), 100 + 8, np.abs(good[:, 1]).max() + 1.0)
    feed(moments, [good], [np.ones(200)], 1)
    assert moments.mean[0] != before and torch.isfinite(moments.mean).all()


def test_the_sums_of_two_processes_add_up_to_those_of_one():
    rng = np.random.default_rng(0)
    halves = [rng.normal(size=(50, 2)) + k for k in range(2)]
    both, first, second = RunningMoments((2,)), RunningMoments((2,)), RunningMoments((2,))
    feed(both, [np.concatenate(halves)], [np.ones(100)], 1)
    for moments, half in ((first, halves[0]), (second, halves[1])):
        moments.accumulate(moments.standardize(torch.from_numpy(half.astype(np.float32))), torch.ones(50))
    first.sums += second.sums
    first.commit()
    far = max(np.abs(half).max() for half in halves)
    assert_rounded(first.mean, both.mean, 2 * (100 + 8), np.full(2, far))
    assert_rounded(first.var, both.var, 4 * 2 * (100 + 8), np.full(2, far**2))
