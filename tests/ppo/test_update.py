"""The whole update against the textbook: losses, KL, entropy, clip fraction, gradients and the weights that result.

Every gradient step is compared from where the step before it ended. Adam divides by the size of a gradient, so that over
several steps one rounding of a gradient near zero grows a thousandfold; over one step every error has a bound that follows
from the arithmetic (tests/roundings.py), on any machine.
"""
from __future__ import annotations

import itertools
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
import torch

from tests.oracle import AdamW, Samples, Textbook, loss_and_gradient, normalized_minibatches, step_by_formula
from tests.ppo.learners import FEATURES, SIZES, as_samples, made_up_experience, run_config, trained_policy
from tests.roundings import FUNCTION, assert_rounded, assert_within, gamma, sway
from wavedash.config import PPOConfig
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.optimizer import FlatAdamW
from wavedash.ppo.ppo_loss import PPOLoss
from wavedash.ppo.rollout import RolloutBuffer
from wavedash.ppo.update import APPLIED, GRAD_NORM, Updater, UpdateTable

STEPS, ROWS = 10, 5
TERMS = PPOLoss.terms
ADAM_ROUNDINGS = 20
"""Roundings of one number in one step of AdamW: clip 2, moments 3 each, bias corrections 4, root, epsilon, division, rate,
decay, sum."""


class Weights(NamedTuple):
    """The value of one parameter and Adam's moments of it."""

    w: np.ndarray
    m: np.ndarray
    v: np.ndarray


def weights_now(policy: ActorCritic, optimizer: FlatAdamW) -> dict[str, Weights]:
    found = {}
    for name, p in policy.named_parameters():
        if p.requires_grad:
            place = slice(p.data.storage_offset(), p.data.storage_offset() + p.numel())
            flat = optimizer.parameters[place], optimizer.exp_avg[place], optimizer.exp_avg_sq[place]
            found[name] = Weights(*(x.double().view(p.shape).numpy() for x in flat))
    return found


class Recorded:
    """One real update: the permutations and gradients it used, and the weights before every step and after the last."""

    def __init__(self, policy: ActorCritic, buffer: RolloutBuffer, config: PPOConfig):
        self.orders: list[torch.Tensor] = []
        self.gradients: list[dict[str, np.ndarray]] = []
        self.weights: list[dict[str, Weights]] = []
        updater = Updater(policy, config, seed=0)
        shuffle, step = torch.randperm, updater.optimizer.step

        def recording_shuffle(*args: Any, **kwargs: Any) -> torch.Tensor:
            self.orders.append(shuffle(*args, **kwargs))
            return self.orders[-1]

        def recording_step(skip: torch.Tensor | None) -> Any:
            self.gradients.append({n: p.grad.double().numpy() for n, p in policy.named_parameters() if p.requires_grad})
            self.weights.append(weights_now(policy, updater.optimizer))
            return step(skip)

        updater.optimizer.step = recording_step
        with mock.patch.object(torch, "randperm", recording_shuffle):
            self.table = updater.update(buffer)
        self.weights.append(weights_now(policy, updater.optimizer))


def agrees(recorded: Recorded, policy: ActorCritic, samples: Samples, config: PPOConfig, sizes: list[int] | None) -> None:
    """Every step of the update is the textbook's."""
    textbook = Textbook(policy, sizes)
    minibatches = [part for order in recorded.orders for part in normalized_minibatches(samples, config, order)]
    assert len(minibatches) == len(recorded.table.values) == len(recorded.gradients)
    for t, (part, advantage) in enumerate(minibatches):
        row = row_of(recorded.table, t)
        before = {name: torch.from_numpy(x.w) for name, x in recorded.weights[t].items()}
        at = textbook.at({**textbook.weights, **before})
        has_the_gradient_of(at, part, advantage, config, row, recorded.gradients[t])
        makes_the_step_of(config, t, recorded.gradients[t], row, recorded.weights[t], recorded.weights[t + 1])


def row_of(table: UpdateTable, t: int) -> dict[str, float]:
    """The metrics of gradient step t by name."""
    return dict(zip(table.columns, table.values[t].tolist(), strict=True))


def has_the_gradient_of(textbook: Textbook, part: Samples, advantage: torch.Tensor, config: PPOConfig, row: dict[str, float],
                        gradient: dict[str, np.ndarray]) -> None:
    """The sums are over the inputs of a layer, the options of a choice and the samples of a minibatch."""
    longest = max(w.shape[-1] for w in textbook.weights.values())
    roundings = FEATURES + 2 * longest + sum(textbook.sizes or [2]) + len(advantage) + 5 * FUNCTION

    def compute(weights, numbers):
        moved = Samples(**{**vars(part), **{name: x for name, x in numbers.items() if name != "advantage"}})
        terms, gradients = loss_and_gradient(textbook.at(weights), moved, numbers["advantage"], config)
        return {"terms": terms, **gradients}

    numbers = {name: getattr(part, name) for name in ("obs", "log_prob", "value", "returns")}
    bound = sway(compute, [textbook.weights, {**numbers, "advantage": advantage}], roundings)
    step = step_by_formula(textbook, part, advantage, config)
    # Ratio and squares are of the order of 1, while the terms made of them may cancel.
    assert_within(np.array([row[name] for name in TERMS]), step.terms, bound["terms"] + gamma(roundings), TERMS)
    for name, g in step.gradient.items():
        assert_within(gradient[name], g, bound[name], f"gradient of {name}")


def makes_the_step_of(config: PPOConfig, t: int, gradient: dict[str, np.ndarray], row: dict[str, float],
                      before: dict[str, Weights], after: dict[str, Weights]) -> None:
    """The step follows the formulas of clipping and AdamW, from the gradient that was really used."""
    everything = np.concatenate([g.ravel() for g in gradient.values()])
    norm = float(np.sqrt((everything**2).sum()))
    assert_rounded(row[GRAD_NORM], norm, len(everything), what="norm")
    assert row[APPLIED] == 1.0
    shrink = 1.0 if config.max_grad_norm is None else min(1.0, config.max_grad_norm / norm)
    for name, (w, m, v) in before.items():
        rate = config.critic_learning_rate if name.startswith("critic") else None
        formula = AdamW(rate or config.learning_rate, config.adam_betas, config.adam_eps, config.weight_decay).set(t, m, v)
        g = gradient[name] * shrink
        new = formula.step(w, g)
        # What is subtracted from the weight is m / sqrt(v), and m may be the difference of larger numbers.
        beta1, beta2 = config.adam_betas
        sizes = beta1 * np.abs(m) + (1 - beta1) * np.abs(g)
        step = formula.rate * sizes / (1 - beta1 ** (t + 1)) / (np.sqrt(formula.v / (1 - beta2 ** (t + 1))) + config.adam_eps)
        roundings = ADAM_ROUNDINGS + len(everything) * (config.max_grad_norm is not None)  # those of the norm
        assert_rounded(after[name].m, formula.m, roundings, sizes, what=f"first moment of {name}")
        assert_rounded(after[name].v, formula.v, 2 * roundings, what=f"second moment of {name}")
        assert_within(after[name].w, new, gamma(2 * roundings) * step + gamma(4) * np.abs(w), f"weights of {name}")


def ppo_config(**ppo: Any) -> PPOConfig:
    return run_config({"learning_rate": 3e-3, "entropy_coef": 0.02, "epochs": 3, "minibatch_size": 10**6, **ppo}).ppo


def check_update(kind: str, masked: bool, inactive: float, capacity: int = 1, policy: Any = None, **ppo: Any) -> None:
    config, policy = ppo_config(**ppo), policy or {}
    made = trained_policy(kind, masked, **policy)
    buffer = made_up_experience(made, STEPS, ROWS, inactive, capacity)
    samples = as_samples(buffer)
    agrees(Recorded(made, buffer, config), made, samples, config, SIZES[kind])


KINDS = [("discrete", True), ("gaussian", False), *(pytest.param(*kind, marks=pytest.mark.slow) for kind in (
    ("discrete", False), ("multi-discrete", False), ("multi-discrete", True), ("multi-binary", False), ("multi-binary", True)))]


@pytest.mark.parametrize(("kind", "masked"), KINDS)
def test_an_update_is_the_textbooks(kind, masked):
    normalizations = ["batch", "minibatch", "off"]
    for value_clip, normalize, inactive, accumulate in itertools.product([None, 0.2], normalizations, [0.0, 0.4], [1, 3]):
        check_update(kind, masked, inactive, value_clip=value_clip, normalize_advantage=normalize, accumulate=accumulate)


@pytest.mark.parametrize("ppo", [
    {"minibatch_size": 25},
    {"minibatch_size": 7, "normalize_advantage": "minibatch", "accumulate": 2},
    {"critic_learning_rate": 1e-2, "weight_decay": 0.1},
    {"max_grad_norm": None, "clip_range": 0.05},
    {"adam_betas": (0.5, 0.9), "adam_eps": 1e-3, "value_coef": 2.0},
], ids=str)
@pytest.mark.parametrize(("kind", "policy"), [
    ("discrete", {}),
    ("gaussian", {"shared": True, "activation": "relu"}),
    ("gaussian", {"std": "state", "critic_hidden": [8, 8]}),
    ("gaussian", {"distribution": "tanh", "initial_std": 0.3}),
    ("gaussian", {"distribution": "beta"}),
    ("multi-discrete", {"activation": "silu"}),
], ids=str)
def test_every_option_of_the_update_is_the_textbooks(kind, policy, ppo):
    check_update(kind, False, 0.3, policy=policy, **ppo)


def test_a_buffer_of_several_rollouts_is_one_batch():
    check_update("discrete", True, 0.3, capacity=3, minibatch_size=50)


# Each stands for a mistake in the update, made by giving the reference other data: the comparison must see it.
MISTAKES = {
    "inactive samples are learned from": lambda s, c: (Samples(**{**vars(s), "active": torch.ones_like(s.active)}), c),
    "the mask is forgotten": lambda s, c: (Samples(**{**vars(s), "mask": None}), c),
    "the value is not clipped": lambda s, c: (s, c.model_copy(update={"value_clip": None})),
    "the ratio is clipped elsewhere": lambda s, c: (s, c.model_copy(update={"clip_range": 0.21})),
    "advantages are normalised otherwise": lambda s, c: (s, c.model_copy(update={"normalize_advantage": "off"})),
    "half the entropy": lambda s, c: (s, c.model_copy(update={"entropy_coef": c.entropy_coef / 2})),
    "Adam's own epsilon": lambda s, c: (s, c.model_copy(update={"adam_eps": 1e-8})),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_in_an_update_would_be_seen(mistake):
    config = ppo_config(value_clip=0.2)
    policy = trained_policy("discrete", True)
    buffer = made_up_experience(policy, STEPS, ROWS, 0.4)
    samples = as_samples(buffer)
    recorded = Recorded(policy, buffer, config)
    agrees(recorded, policy, samples, config, [5])
    with pytest.raises(AssertionError):
        agrees(recorded, policy, *MISTAKES[mistake](samples, config), [5])


def test_the_made_up_experience_reaches_every_branch_of_the_loss():
    policy = trained_policy("discrete")
    samples = as_samples(made_up_experience(policy, STEPS, ROWS, 0.4))
    with torch.no_grad():
        said = Textbook(policy, [5]).say(samples.obs, samples.action, None)
    ratio = (said.log_prob - samples.log_prob).exp()
    for positive in (True, False):
        side = (samples.advantage > 0) == positive
        for region in (ratio < 0.8, (ratio > 0.8) & (ratio < 1.2), ratio > 1.2):
            assert (side & region & samples.active).any()
    assert ((said.value - samples.value).abs() > 0.2).any()
