"""The gradients that are written out by hand, against autograd through the same policy."""
from __future__ import annotations

import itertools
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.ppo.learners import FEATURES, random_mask, trained_policy
from tests.roundings import FUNCTION, assert_within, sway
from wavedash.policy import explicit
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.evaluation import Evaluation, OutputGradients, autograd_evaluation
from wavedash.policy.explicit import ExplicitPolicy

BATCH = 32
ROUNDINGS = BATCH + 3 * 8 + 8 * FUNCTION
"""A gradient is a sum over the batch and over layers of at most eight units, through some functions."""


def batch_for(policy: ActorCritic, kind: str, masked: bool):
    obs = torch.randn(BATCH, FEATURES)
    obs = {"obs": obs, "action_mask": random_mask(kind, BATCH)} if masked else obs
    with torch.no_grad():
        action = policy.act(obs, {}).action
    return obs, action, OutputGradients(torch.randn(BATCH), torch.randn(BATCH), torch.randn(BATCH))


def autograd_says(policy: ActorCritic, obs, action: Tensor) -> Evaluation:
    with torch.enable_grad():
        distribution, value = policy(obs)
        return autograd_evaluation(distribution.log_prob(action), distribution.entropy(), value)


def gradients(policy: ActorCritic, evaluation: Evaluation, of_outputs: OutputGradients) -> dict[str, Tensor]:
    for p in policy.parameters():
        p.grad = torch.zeros_like(p) if p.requires_grad else None
    with torch.no_grad():
        evaluation.backward(of_outputs)
    return {name: p.grad.clone() for name, p in policy.named_parameters() if p.requires_grad}


def assert_equal_but_for_roundings(policy: ActorCritic, ours: Evaluation, of_outputs: OutputGradients, obs: Any,
                                   judge: Callable[[ActorCritic, Any], Evaluation]) -> None:
    """The evaluation of `obs` and its gradients equal those of `judge`, which goes through autograd, up to roundings."""
    def by_autograd_alone(weights: dict[str, Tensor], obs: Any) -> dict[str, Tensor]:
        twin = deepcopy(policy)
        twin._explicit = []
        twin.load_state_dict(weights, strict=False)
        said = judge(twin, {**obs, "obs": obs["obs"].float()} if isinstance(obs, dict) else obs.float())
        return {**{name: getattr(said, name) for name in OutputGradients._fields}, **gradients(twin, said, of_outputs)}

    weights = {name: p.detach() for name, p in policy.named_parameters()}
    bound = sway(by_autograd_alone, [weights, obs], ROUNDINGS)
    expected = by_autograd_alone(weights, obs)
    found = {**{name: getattr(ours, name) for name in OutputGradients._fields}, **gradients(policy, ours, of_outputs)}
    assert found.keys() == expected.keys()
    for name, x in expected.items():
        assert_within(found[name], x, bound[name], name)


def assert_same(policy: ActorCritic, kind: str, masked: bool) -> None:
    obs, action, of_outputs = batch_for(policy, kind, masked)
    with torch.no_grad():
        ours = policy.evaluate(obs, action)
    assert policy._explicit, "this policy is meant to have written-out gradients"
    assert_equal_but_for_roundings(policy, ours, of_outputs, obs, lambda twin, seen: autograd_says(twin, seen, action))


SHAPES = list(itertools.product([[], [7], [7, 5], [7, 5, 6]], [False, True], ["tanh", "relu", "elu", "silu", "gelu"]))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "masked", "policy"), [
    ("discrete", False, {}), ("discrete", True, {}), ("gaussian", False, {"std": "learned"}),
    ("gaussian", False, {"std": "fixed", "initial_std": 0.3}), ("gaussian", False, {"std": "gsde", "initial_std": 0.3}),
], ids=["discrete", "masked", "learned deviation", "fixed deviation", "gSDE"])
def test_gradients_by_hand_equal_autograds_for_every_shape_of_network(kind, masked, policy):
    for hidden, shared, activation in SHAPES:
        assert_same(trained_policy(kind, masked, hidden=hidden, shared=shared, activation=activation, **policy), kind, masked)


def test_a_critic_of_another_shape_has_the_same_gradients_too():
    for critic_hidden in ([], [3], [9, 4]):
        policy = trained_policy("discrete", hidden=[7], critic_hidden=critic_hidden)
        assert [layer.out_features for layer in policy.trunks["critic"].body.layers] == critic_hidden
        assert_same(policy, "discrete", False)


@pytest.mark.parametrize(("memory", "layers", "shared", "kind", "masked"), [
    ("gru", 1, False, "discrete", True), ("gru", 2, True, "gaussian", False), ("gru", 3, False, "discrete", False),
    ("lstm", 1, False, "gaussian", False), ("lstm", 2, False, "discrete", True), ("lstm", 1, True, "discrete", False),
])
def test_gradients_of_memory_by_hand_equal_autograds(memory, layers, shared, kind, masked):
    length, rows = 6, 5
    policy = trained_policy(kind, masked, hidden=[7], shared=shared, memory={"kind": memory, "size": 4, "layers": layers})
    seen = torch.randn(length, rows, FEATURES)
    obs = {"obs": seen, "action_mask": random_mask(kind, length, rows)} if masked else seen
    start = {name: torch.randn_like(x) for name, x in policy.initial_memory(rows).items()}
    fresh = torch.rand(length, rows) < 0.3
    of_outputs = OutputGradients(*torch.randn(3, length * rows))
    with torch.no_grad():
        action = policy(obs, start, fresh)[0].sample(None)
        ours = policy.evaluate(obs, action, start, fresh)
    assert policy._explicit, "this policy is meant to have written-out gradients"

    def judge(twin: ActorCritic, seen: Any) -> Evaluation:
        with torch.enable_grad():
            return autograd_evaluation(*twin.evaluate_outputs(seen, action, start, fresh))

    assert_equal_but_for_roundings(policy, ours, of_outputs, obs, judge)


@pytest.mark.parametrize("raw", [[-10.0, 2.0], [-12.0, 3.0], [-11.0, 0.5]])
def test_a_deviation_at_or_past_its_limit_has_the_gradient_that_clamp_has(raw):
    policy = trained_policy("gaussian")
    with torch.no_grad():
        policy.head.log_std.copy_(torch.tensor(raw))
    obs, _, of_outputs = batch_for(policy, "gaussian", False)
    with torch.no_grad():
        action = policy.act(obs, {}).action
        ours = policy.evaluate(obs, action)
    assert_equal_but_for_roundings(policy, ours, of_outputs, obs, lambda twin, seen: autograd_says(twin, seen, action))
    by_hand = policy.head.log_std.grad
    outside = torch.tensor([abs(x + 4) > 6 for x in raw])
    assert (by_hand[outside] == 0).all() and (by_hand[~outside] != 0).all()


@pytest.mark.parametrize("mistake", ["entropy", "mask", "activation"])
def test_a_mistake_in_a_written_out_gradient_would_be_seen(mistake, monkeypatch):
    policy = trained_policy("discrete", masked=True)
    if mistake == "activation":
        monkeypatch.setitem(explicit.ACTIVATION_GRADIENTS, "tanh", lambda gradient, before, out: gradient * (1 - out))
    elif mistake == "entropy":
        right = explicit._categorical

        def without_entropy(*args):
            log_prob, entropy, of_output = right(*args)
            return log_prob, entropy, lambda of_outputs: of_output(of_outputs._replace(entropy=torch.zeros(BATCH)))

        monkeypatch.setattr(explicit, "_categorical", without_entropy)
    else:
        right_evaluate = ExplicitPolicy.evaluate
        monkeypatch.setattr(ExplicitPolicy, "evaluate", lambda self, x, action, mask, *rest: right_evaluate(
            self, x, action, None, *rest))
    with pytest.raises(AssertionError):
        assert_same(policy, "discrete", True)


class DoublingBody(nn.Module):
    """A network of a user's own."""

    activation, outputs = "tanh", FEATURES

    def forward(self, x: Tensor) -> Tensor:
        return 2 * x


def own_body() -> ActorCritic:
    policy = trained_policy("discrete", hidden=[])
    policy.trunks["actor"].body = DoublingBody()
    return policy


def frozen_body() -> ActorCritic:
    policy = trained_policy("discrete")
    policy.trunks["actor"].requires_grad_(False)
    return policy


@pytest.mark.parametrize("make", [
    lambda: trained_policy("multi-discrete"), lambda: trained_policy("multi-binary"),
    lambda: trained_policy("gaussian", std="state"), own_body, frozen_body,
], ids=["multi-discrete", "multi-binary", "state-dependent deviation", "own network", "frozen layers"])
def test_everything_else_goes_through_autograd(make):
    policy = make()
    obs = torch.randn(BATCH, FEATURES)
    with torch.no_grad():
        action = policy.act(obs, {}).action
        evaluation = policy.evaluate(obs, action)
    assert policy._explicit == []
    of_outputs = OutputGradients(torch.randn(BATCH), torch.randn(BATCH), torch.randn(BATCH))
    ours = gradients(policy, evaluation, of_outputs)
    reference = gradients(policy, autograd_says(policy, obs, action), of_outputs)
    assert ours and any((g != 0).any() for g in ours.values())
    for name, g in reference.items():
        assert torch.equal(ours[name], g)
