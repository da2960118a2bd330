"""A share of a uniform choice among the allowed actions in a discrete policy, against torch.distributions in float64."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.oracle import Textbook
from tests.policy.test_compiled import needs_compiler
from tests.policy.test_explicit import assert_same
from tests.ppo.combinations import CLOSE, Combination, Watched, differences, learner_of, saved_and_loaded
from tests.ppo.learners import SIZES, observation_space, random_mask, trained_policy
from tests.ppo.test_update import check_update
from tests.roundings import FUNCTION, assert_rounded
from wavedash.config import PolicyConfig
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.compiled import Compiled
from wavedash.policy.distributions import Categorical, MultiCategorical
from wavedash.runs import compatible

FLOOR = 0.1
WITH_FLOOR: dict[str, Any] = {"action_floor": FLOOR}


def mixed(logits: torch.Tensor, mask: torch.Tensor | None, floor: float) -> np.ndarray:
    """The probabilities of one row after another, by their definition in Python floats."""
    rows = []
    for k, row in enumerate(logits.tolist()):
        allowed = [True] * len(row) if mask is None else [bool(x) for x in mask[k]]
        top = max(x for x, possible in zip(row, allowed, strict=True) if possible)
        weights = [math.exp(x - top) if possible else 0.0 for x, possible in zip(row, allowed, strict=True)]
        rows.append([(1 - floor) * w / sum(weights) + floor / sum(allowed) * possible
                     for w, possible in zip(weights, allowed, strict=True)])
    return np.array(rows)


@pytest.mark.parametrize("masked", [False, True])
def test_probabilities_entropy_and_log_probability_are_those_of_the_mixture(masked):
    torch.manual_seed(0)
    logits, mask = 4 * torch.randn(50, 5), random_mask("discrete", 50) if masked else None
    ours, p = Categorical(logits, mask, FLOOR), mixed(logits, mask, FLOOR)
    roundings = 2 * 5 + 3 * FUNCTION
    assert_rounded(ours.probs, p, roundings, p + 1.0)
    allowed = p > 0
    assert (ours.probs.numpy()[~allowed] == 0).all() and (p[allowed] >= FLOOR / 5).all()
    assert_rounded(ours.log_probs.exp()[torch.from_numpy(allowed)], p[allowed], roundings, p[allowed] + 1.0)
    entropy = [-sum(x * math.log(x) for x in row if x > 0) for row in p]
    assert_rounded(ours.entropy(), entropy, roundings, np.array(entropy) + 2.0)
    action = ours.sample(torch.Generator().manual_seed(0))
    assert_rounded(ours.log_prob(action), np.log(p[np.arange(50), action.numpy()]), roundings, 5.0)
    assert torch.equal(ours.mode(), Categorical(logits, mask).mode())


def test_no_allowed_action_dies_out_and_no_forbidden_one_comes_back():
    logits = torch.tensor([[1000.0, -1000.0, 0.0, 1000.0]])
    mask = torch.tensor([[1, 1, 1, 0]])
    assert Categorical(logits, mask).probs.tolist() == [[1.0, 0.0, 0.0, 0.0]]
    np.testing.assert_allclose(Categorical(logits, mask, 0.3).probs, [[0.8, 0.1, 0.1, 0.0]], rtol=1e-6)


def test_samples_are_drawn_from_the_mixture():
    draws = 40_000
    logits, mask = torch.tensor([3.0, -9.0, 1.0, 5.0, -20.0]), torch.tensor([1, 1, 1, 0, 1])
    p = mixed(logits[None], mask[None], FLOOR)[0]
    samples = Categorical(logits.expand(draws, 5), mask.expand(draws, 5), FLOOR).sample(torch.Generator().manual_seed(1))
    counts = np.bincount(samples.numpy(), minlength=5)
    assert (np.abs(counts - draws * p) <= 5 * np.sqrt(draws * p * (1 - p))).all()
    without = mixed(logits[None], mask[None], 0.0)[0]  # the control: these counts are not those of the network alone
    assert (np.abs(counts - draws * without) > 5 * np.sqrt(draws * without * (1 - without)) + 1).any()


def test_every_one_of_several_choices_has_its_own_floor():
    torch.manual_seed(0)
    sizes = SIZES["multi-discrete"]
    logits, mask = 4 * torch.randn(30, sum(sizes)), random_mask("multi-discrete", 30)
    ours = MultiCategorical(logits, MultiCategorical.layout(sizes), mask, FLOOR)
    action = ours.sample(torch.Generator().manual_seed(0))
    log_prob, entropy = np.zeros(30), np.zeros(30)
    for k, (part, allowed) in enumerate(zip(logits.split(sizes, -1), mask.split(sizes, -1), strict=True)):
        p = mixed(part, allowed, FLOOR)
        log_prob += np.log(p[np.arange(30), action[:, k].numpy()])
        entropy += [-sum(x * math.log(x) for x in row if x > 0) for row in p]
    roundings = 2 * sum(sizes) + 3 * FUNCTION
    assert_rounded(ours.log_prob(action), log_prob, roundings, 15.0)
    assert_rounded(ours.entropy(), entropy, roundings, entropy + 6.0)


@pytest.mark.parametrize(("kind", "masked"), [("discrete", False), ("discrete", True), ("multi-discrete", True)])
def test_an_update_with_a_floor_is_the_textbooks(kind, masked):
    check_update(kind, masked, 0.3, policy=WITH_FLOOR, minibatch_size=25)


@pytest.mark.parametrize("mistake", ["no floor", "a floor under forbidden actions"])
def test_another_mixture_would_be_seen(mistake, monkeypatch):
    right = Textbook._choice
    if mistake == "no floor":
        monkeypatch.setattr(Textbook, "_choice", lambda self, logits: torch.distributions.Categorical(logits=logits))
    else:
        monkeypatch.setattr(Textbook, "_choice", lambda self, logits: torch.distributions.Categorical(
            probs=(1 - self.floor) * logits.softmax(-1) + self.floor / logits.shape[-1]))
    assert right is not Textbook._choice
    with pytest.raises(AssertionError):
        check_update("discrete", True, 0.3, policy=WITH_FLOOR)


@pytest.mark.parametrize("masked", [False, True])
def test_gradients_by_hand_equal_autograds(masked):
    for floor in (0.02, 0.5):
        assert_same(trained_policy("discrete", masked, hidden=[7], action_floor=floor), "discrete", masked)


@pytest.mark.parametrize("precision", ["fp32", pytest.param("bf16", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("memory", "action"), [("none", "discrete"), ("gru", "multi-discrete")])
def test_the_ratio_is_one_and_a_resume_is_exact(memory, action, precision, tmp_path):
    combo = Combination(memory, action, True, False, precision)
    run = Watched(learner_of(combo, policy=WITH_FLOOR))
    run.learner.iterate()
    second = learner_of(combo, started=False, policy=WITH_FLOOR)
    second.load_state(*saved_and_loaded(run.learner, tmp_path))
    assert run.learner.iterate().metrics == second.iterate().metrics
    assert differences(run.learner, second) == set()
    assert max(x.ratio for x in run.before) < CLOSE < 0.01 * min(x.ratio for x in run.after)


def test_a_row_without_an_allowed_action_is_as_without_a_floor():
    """It can only be an inactive row, whose numbers are multiplied by 0: they must be finite."""
    logits = torch.randn(2, 4, requires_grad=True)
    choice = Categorical(logits, torch.zeros(2, 4), FLOOR)
    torch.testing.assert_close(choice.log_probs, Categorical(logits, torch.zeros(2, 4)).log_probs)
    (choice.entropy() + choice.log_prob(choice.sample())).sum().backward()
    assert logits.grad.isfinite().all()


def test_weights_fit_whatever_the_floor_and_continuous_actions_have_none():
    one, other = (learner_of(Combination("none", "discrete", False, False, "fp32"), policy={"action_floor": floor})
                  for floor in (0.0, 0.02))
    assert compatible.differences(one.fingerprint(), other.fingerprint()) == []
    with pytest.raises(UserError, match=r"policy.action_floor=0.1 is a probability of discrete actions"):
        ActorCritic(observation_space("gaussian", False), spaces.Box(-1, 1, (2,)), PolicyConfig(**WITH_FLOOR))


@pytest.mark.slow
@needs_compiler
def test_a_compiled_policy_with_a_floor_says_the_same():
    combo = Combination("none", "discrete", True, False, "fp32")
    run = Watched(learner_of(combo, policy=WITH_FLOOR, ppo={"minibatch_size": 10**6}, compile=True))
    run.learner.iterate()
    run.learner.iterate()
    compiled = run.learner.policy._evaluate_outputs
    assert isinstance(compiled, Compiled) and compiled.compiled is not None
    assert max(x.ratio for x in run.before) < CLOSE
