"""Distributions against torch's own in float64, and what they sample against what they say."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.oracle import expected_log_tanh_derivative, log_tanh_derivative
from tests.roundings import FUNCTION, assert_rounded, assert_within, gamma, sway
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


def assert_densities_agree(ours: Any, action: Tensor, exact: Callable[..., Any], parameters: list[Tensor],
                           roundings: int) -> None:
    """Log-probability and entropy equal the `exact` ones of these parameters, which are computed in float64, up to roundings of
    the inputs and of terms of the order of 1."""
    bound, truth = sway(exact, parameters, roundings), exact(*(x.double() for x in parameters))
    for name, found in {"log_prob": ours.log_prob(action), "entropy": ours.entropy()}.items():
        if name in truth:
            assert_within(found, truth[name], bound[name] + gamma(roundings), name)


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
        action = ours.sample(generator())

        def exact(logits: Tensor, mask=mask, action=action) -> dict[str, Tensor]:
            choice = torch.distributions.Categorical(logits=logits if mask is None else logits.masked_fill(~mask, -torch.inf))
            return {"log_prob": choice.log_prob(action), "entropy": choice.entropy()}

        assert_densities_agree(ours, action, exact, [logits], 2 * 6 + 3 * FUNCTION)
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


def test_a_forbidden_action_is_never_sampled_and_has_no_gradient():
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
    action = ours.sample(generator())

    def exact(logits: Tensor) -> dict[str, Tensor]:
        choices = reference_choices(logits, mask)
        return {"log_prob": sum(choice.log_prob(action[:, k]) for k, choice in enumerate(choices)),
                "entropy": sum(choice.entropy() for choice in choices)}

    assert_densities_agree(ours, action, exact, [logits], sum(SIZES) + 3 * FUNCTION)
    assert torch.equal(ours.mode(), torch.stack([c.probs.argmax(-1) for c in reference_choices(logits, mask)], -1))
    mean_instead_of_sum = exact(logits)["log_prob"] / len(SIZES)
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
    action = ours.sample(generator())

    def exact(mean: Tensor, log_std: Tensor) -> dict[str, Tensor]:
        normal = torch.distributions.Normal(mean, log_std.exp().expand_as(mean))
        return {"log_prob": normal.log_prob(action.double()).sum(-1), "entropy": normal.entropy().sum(-1)}

    assert_densities_agree(ours, action, exact, [mean, log_std], 3 * 4 + FUNCTION)
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

    def exact(mean: Tensor, std: Tensor, action: Tensor) -> dict[str, Tensor]:
        before_tanh = torch.distributions.Normal(mean, std.exp()).log_prob(action)
        return {"log_prob": (before_tanh - log_tanh_derivative(action)).sum(-1)}

    # Two ways to the density in float64: torch's goes back through tanh, which loses digits where it is flat.
    assert_within(exact(mean.double(), std.double(), action.double())["log_prob"], log_prob, 1e-6)
    assert_densities_agree(ours, action, exact, [mean, std, action], 3 * 4 + 3 * FUNCTION)
    entropy = (normal.entropy() + expected_log_tanh_derivative(normal.loc, normal.scale)).sum(-1)
    # This is the error of the quadrature, the same on every machine; roundings are a hundredth of it.
    torch.testing.assert_close(ours.entropy().double(), entropy, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(ours.entropy().double(), normal.entropy().sum(-1), atol=0.01)


def test_a_beta_has_torchs_density_spread_over_twice_the_range():
    torch.manual_seed(0)
    alpha, beta = 1 + 4 * torch.rand(50, 3), 1 + 4 * torch.rand(50, 3)
    ours, theirs = Beta(alpha, beta), torch.distributions.Beta(alpha.double(), beta.double())
    action = ours.sample(generator())
    log_two = 3 * math.log(2)

    def exact(alpha: Tensor, beta: Tensor, action: Tensor) -> dict[str, Tensor]:
        unit = torch.distributions.Beta(alpha, beta)
        return {"log_prob": unit.log_prob(action).sum(-1) - log_two, "entropy": unit.entropy().sum(-1) + log_two}

    assert_densities_agree(ours, action, exact, [alpha, beta, action], 3 * (6 + 5 * FUNCTION))
    spread = alpha.double() + beta.double()
    assert_rounded(ours.mode(), theirs.mode, 4, spread / (spread - 2) * theirs.mode)  # alpha + beta is rounded, less 2
    assert_rounded(Beta(torch.ones(1, 1), torch.ones(1, 1)).entropy(), [math.log(2)], 8 * FUNCTION, what="uniform over [-1, 1]")


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
