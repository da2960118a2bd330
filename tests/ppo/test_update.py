"""The whole update against the textbook: losses, KL, entropy, clip fraction, gradients and the weights that come out."""
from __future__ import annotations

import itertools
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch

from tests.oracle import GradientStep, Samples, Textbook, update_by_formula
from tests.ppo.learners import SIZES, as_samples, made_up_experience, run_config, trained_policy
from wavedash.config import PPOConfig
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.rollout import RolloutBuffer
from wavedash.ppo.update import FIGURES, Updater

STEPS, ROWS = 10, 5


class Recorded:
    """One real update, with the permutations and gradients it used."""

    def __init__(self, policy: ActorCritic, buffer: RolloutBuffer, config: PPOConfig):
        self.orders: list[torch.Tensor] = []
        self.gradients: list[dict[str, np.ndarray]] = []
        updater = Updater(policy, config, seed=0)
        shuffle, step = torch.randperm, updater.optimizer.step

        def recording_shuffle(*args: Any, **kwargs: Any) -> torch.Tensor:
            self.orders.append(shuffle(*args, **kwargs))
            return self.orders[-1]

        def recording_step(skip: torch.Tensor | None) -> Any:
            self.gradients.append({n: p.grad.numpy().copy() for n, p in policy.named_parameters() if p.requires_grad})
            return step(skip)

        updater.optimizer.step = recording_step
        with mock.patch.object(torch, "randperm", recording_shuffle):
            self.table = updater.update(buffer).numpy()


def reference(policy: ActorCritic, samples: Samples, config: PPOConfig, orders: list[torch.Tensor], sizes: list[int] | None
              ) -> tuple[list[GradientStep], dict[str, np.ndarray]]:
    textbook = Textbook(policy, sizes)
    steps = update_by_formula(textbook, samples, config, orders)
    return steps, {name: w.detach().numpy() for name, w in textbook.weights.items()}


def agrees(recorded: Recorded, policy: ActorCritic, steps: list[GradientStep], weights: dict[str, np.ndarray]) -> None:
    """Everything that an update shows, to 2e-5: float32 against float64 over several Adam steps."""
    assert len(recorded.table) == len(steps)
    for row, gradient, step in zip(recorded.table, recorded.gradients, steps, strict=True):
        expected = [*step.terms, step.grad_norm, 1.0]
        np.testing.assert_allclose(row, expected, rtol=2e-5, atol=2e-6, err_msg=str(FIGURES))
        for name, g in step.gradient.items():
            np.testing.assert_allclose(gradient[name], g, rtol=2e-5, atol=2e-6 * max(1.0, step.grad_norm), err_msg=name)
    for name, p in policy.named_parameters():
        np.testing.assert_allclose(p.detach().numpy(), weights[name], rtol=0, atol=2e-6, err_msg=name)


def ppo_config(**ppo: Any) -> PPOConfig:
    return run_config({"learning_rate": 3e-3, "entropy_coef": 0.02, "epochs": 3, "minibatch_size": 10**6, **ppo}).ppo


def check_update(kind: str, masked: bool, inactive: float, capacity: int = 1, policy: Any = None, **ppo: Any) -> None:
    config, policy = ppo_config(**ppo), policy or {}
    made, before = trained_policy(kind, masked, **policy), trained_policy(kind, masked, **policy)
    buffer = made_up_experience(made, STEPS, ROWS, inactive, capacity)
    samples = as_samples(buffer)
    recorded = Recorded(made, buffer, config)
    agrees(recorded, made, *reference(before, samples, config, recorded.orders, SIZES[kind]))


KINDS = [("discrete", False), ("discrete", True), ("multi-discrete", False), ("multi-discrete", True), ("multi-binary", False),
         ("multi-binary", True), ("gaussian", False)]


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


# What a wrong update would do, by giving the reference other data: the comparison must see each.
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
    policy, before = trained_policy("discrete", True), trained_policy("discrete", True)
    buffer = made_up_experience(policy, STEPS, ROWS, 0.4)
    samples = as_samples(buffer)
    recorded = Recorded(policy, buffer, config)
    agrees(recorded, policy, *reference(before, samples, config, recorded.orders, [5]))
    with pytest.raises(AssertionError):
        agrees(recorded, policy, *reference(before, *MISTAKES[mistake](samples, config), recorded.orders, [5]))


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
