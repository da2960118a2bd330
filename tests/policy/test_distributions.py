"""Distributions against torch's own in float64, and what they sample against what they say."""
from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tests.oracle import expected_log_tanh_slope
from wavedash.policy.distributions import Beta, Categorical, Gaussian, MultiCategorical, TanhGaussian

SIZES = [3, 2, 5]
CHI_SQUARE_999 = {1: 10.83, 2: 13.82, 3: 16.27, 4: 18.47, 5: 20.52}
"""Exceeded by chance once in a thousand, by degrees of freedom."""


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def chi_square(samples: Tensor, probs: Tensor) -> float:
    counts = torch.bincount(samples, minlength=len(probs)).double()
    expected = probs.double() * len(samples)
    allowed = probs > 0
    assert counts[~allowed].sum() == 0
    return float(((counts - expected).square() / expected)[allowed].sum())


def reference_choices(logits: Tensor, mask: Tensor | None) -> list[torch.distributions.Categorical]:
    logits = logits.double() if mask is None else logits.double().masked_fill(mask == 0, -torch.inf)
    return [torch.distributions.Categorical(logits=part) for part in logits.split(SIZES, -1)]


# --- one choice ------------------------------------------------------------------------------------------------------


def test_log_probabilities_and_entropy_of_a_choice_are_torchs():
    torch.manual_seed(0)
    logits = 3 * torch.randn(50, 6)
    for mask in (None, (torch.rand(50, 6) < 0.5).index_fill(-1, torch.tensor([2]), True)):
        ours = Categorical(logits, mask)
        masked = logits.double() if mask is None else logits.double().masked_fill(~mask, -torch.inf)
        theirs = torch.distributions.Categorical(logits=masked)
        action = ours.sample(generator())
        torch.testing.assert_close(ours.log_prob(action).double(), theirs.log_prob(action), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(ours.entropy().double(), theirs.entropy(), rtol=1e-5, atol=1e-6)
        assert torch.equal(ours.mode(), masked.argmax(-1))


@pytest.mark.parametrize("mask", [None, [1, 0, 1, 1, 0]])
def test_a_choice_is_sampled_as_often_as_its_probability_says(mask):
    logits = torch.tensor([0.5, 2.0, -1.0, 1.0, 0.0])
    mask = None if mask is None else torch.tensor(mask)
    samples = Categorical(logits.expand(40_000, 5), mask).sample(generator())
    probs = (logits if mask is None else logits.masked_fill(mask == 0, -torch.inf)).softmax(-1)
    degrees = int((probs > 0).sum()) - 1
    assert chi_square(samples, probs) < CHI_SQUARE_999[degrees]
    wrong = (probs + 0.02) / (probs + 0.02).sum() * (probs > 0)
    assert chi_square(samples, wrong / wrong.sum()) > CHI_SQUARE_999[degrees]


def test_a_forbidden_action_is_never_sampled_and_pulls_on_nothing():
    """Its logit is the largest by far, so any leak would show."""
    logits = torch.tensor([[50.0, 0.0, 0.1, 60.0]]).expand(20_000, 4).clone().requires_grad_()
    mask = torch.tensor([0, 1, 1, 0])
    distribution = Categorical(logits, mask)
    action = distribution.sample(generator())
    assert set(action.tolist()) == {1, 2} and set(distribution.mode().tolist()) == {2}
    (distribution.log_prob(action).sum() + distribution.entropy().sum()).backward()
    assert (logits.grad[:, [0, 3]] == 0).all() and (logits.grad[:, [1, 2]] != 0).any()
    assert float(distribution.entropy()[0].detach()) == pytest.approx(math.log(2), abs=0.01)


def test_a_single_allowed_action_is_certain():
    distribution = Categorical(torch.randn(100, 4), torch.tensor([0, 0, 1, 0]))
    action = distribution.sample(generator())
    assert (action == 2).all() and (distribution.log_prob(action) == 0).all() and (distribution.entropy() == 0).all()


# --- several choices -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("masked", [False, True])
def test_several_choices_add_up(masked):
    torch.manual_seed(0)
    logits = 2 * torch.randn(40, sum(SIZES))
    mask = None
    if masked:
        mask = torch.rand(40, sum(SIZES)) < 0.5
        mask[:, [0, 3, 6]] = True
    ours = MultiCategorical(logits, MultiCategorical.layout(SIZES), mask)
    theirs = reference_choices(logits, mask)
    action = ours.sample(generator())
    log_prob = sum(choice.log_prob(action[:, k]) for k, choice in enumerate(theirs))
    torch.testing.assert_close(ours.log_prob(action).double(), log_prob, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.entropy().double(), sum(c.entropy() for c in theirs), rtol=1e-5, atol=1e-5)
    assert torch.equal(ours.mode(), torch.stack([c.probs.argmax(-1) for c in theirs], -1))
    mean_instead_of_sum = log_prob / len(SIZES)
    assert not torch.allclose(ours.log_prob(action).double(), mean_instead_of_sum, atol=1e-2)


def test_each_of_several_choices_is_sampled_by_its_own_probabilities_and_stays_in_its_range():
    torch.manual_seed(1)
    logits = torch.randn(sum(SIZES))
    mask = torch.tensor([1, 1, 1, 1, 1, 1, 0, 1, 1, 1])
    distribution = MultiCategorical(logits.expand(40_000, -1), MultiCategorical.layout(SIZES), mask)
    samples = distribution.sample(generator())
    for k, choice in enumerate(reference_choices(logits, mask)):
        degrees = int((choice.probs > 0).sum()) - 1
        assert chi_square(samples[:, k], choice.probs) < CHI_SQUARE_999[degrees]
    first_two = torch.corrcoef(samples[:, :2].T.double())[0, 1]
    assert abs(float(first_two)) < 0.02, "choices are independent"


# --- continuous ------------------------------------------------------------------------------------------------------


def test_density_and_entropy_of_a_gaussian_are_torchs():
    torch.manual_seed(0)
    mean, log_std = torch.randn(50, 3), torch.tensor([-3.0, 0.0, 1.5])
    ours = Gaussian(mean, log_std)
    theirs = torch.distributions.Normal(mean.double(), log_std.double().exp())
    action = ours.sample(generator())
    torch.testing.assert_close(ours.log_prob(action).double(), theirs.log_prob(action.double()).sum(-1), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(ours.entropy().double(), theirs.entropy().sum(-1), rtol=1e-5, atol=1e-5)
    assert torch.equal(ours.mode(), mean)


def test_a_gaussian_samples_with_its_mean_and_deviation():
    mean, log_std = torch.tensor([1.0, -2.0]), torch.tensor([-1.0, 0.5])
    n = 100_000
    samples = Gaussian(mean.expand(n, 2), log_std).sample(generator()).double()
    z = (samples - mean) / log_std.exp()
    assert (z.mean(0).abs() < 4 / math.sqrt(n)).all()
    assert ((z.var(0) - 1).abs() < 4 * math.sqrt(2 / n)).all()
    inside = (z.abs() < 1).double().mean(0)
    assert ((inside - 0.6827).abs() < 0.006).all()
    assert abs(float(torch.corrcoef(z.T)[0, 1])) < 0.015


@pytest.mark.parametrize("log_std", [-3.0, -1.0, 0.0])
def test_a_squashed_normal_has_the_density_and_entropy_of_what_comes_out_of_tanh(log_std):
    torch.manual_seed(0)
    mean, std = 1.5 * torch.randn(50, 3), torch.full((50, 3), log_std)
    ours = TanhGaussian(mean, std, TanhGaussian.quadrature())
    action = ours.sample(generator())  # before tanh
    normal = torch.distributions.Normal(mean.double(), std.double().exp())
    theirs = torch.distributions.TransformedDistribution(normal, torch.distributions.TanhTransform(cache_size=1))
    log_prob = theirs.log_prob(action.double().tanh()).sum(-1)
    torch.testing.assert_close(ours.log_prob(action).double(), log_prob, rtol=1e-3, atol=1e-3)
    exact = (normal.entropy() + expected_log_tanh_slope(normal.loc, normal.scale)).sum(-1)
    torch.testing.assert_close(ours.entropy().double(), exact, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(ours.entropy().double(), normal.entropy().sum(-1), atol=0.01)


def test_a_beta_has_torchs_density_spread_over_twice_the_range():
    torch.manual_seed(0)
    alpha, beta = 1 + 4 * torch.rand(50, 3), 1 + 4 * torch.rand(50, 3)
    ours, theirs = Beta(alpha, beta), torch.distributions.Beta(alpha.double(), beta.double())
    action = ours.sample(generator())
    log_two = 3 * math.log(2)
    expected = theirs.log_prob(action.double()).sum(-1) - log_two
    torch.testing.assert_close(ours.log_prob(action).double(), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(ours.entropy().double(), theirs.entropy().sum(-1) + log_two, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(ours.mode().double(), theirs.mode)
    assert float(Beta(torch.ones(1, 1), torch.ones(1, 1)).entropy()) == pytest.approx(math.log(2)), "uniform over [-1, 1]"


def test_a_beta_samples_with_its_mean_and_deviation():
    n, shape = 100_000, torch.tensor([[1.2, 5.0], [2.0, 2.0]])
    samples = Beta(shape[0].expand(n, 2), shape[1].expand(n, 2)).sample(generator()).double()
    reference = torch.distributions.Beta(shape[0].double(), shape[1].double())
    assert (samples.mean(0) - reference.mean).abs().max() < 5 * float(reference.stddev.max()) / math.sqrt(n)
    torch.testing.assert_close(samples.var(0), reference.variance, rtol=0.03, atol=0.0)
    assert samples.min() > 0 and samples.max() < 1


def test_samples_depend_on_the_generator_alone():
    logits = torch.randn(20, 6)
    torch.manual_seed(3)
    first = Categorical(logits).sample(generator(5))
    torch.manual_seed(4)
    assert torch.equal(Categorical(logits).sample(generator(5)), first)
    assert not torch.equal(Categorical(logits).sample(generator(6)), first)
