"""Sequences of a single step: a policy with memory is then a feed-forward network of (observation, stored state)."""
from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from tests.policy.test_memory import NAMES
from tests.ppo.learners import identity_learner
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.evaluation import Slopes
from wavedash.policy.memory import State


def as_feed_forward(policy: ActorCritic, obs: Tensor, memory: State) -> tuple[Tensor, Tensor]:
    """Logits and values of single steps: torch's own cells as layers of a feed-forward network of (observation, state)."""
    features = []
    for name, trunk in policy.trunks.items():
        (layer,) = trunk.memory.layers
        cell = nn.GRUCell if trunk.memory.kind == "gru" else nn.LSTMCell
        weights = {theirs: getattr(layer, mine) for theirs, mine in NAMES.items()}
        start = [memory[f"{name}.{part}"][:, 0] for part in trunk.memory.parts]
        state = start[0] if len(start) == 1 else tuple(start)
        out = functional_call(cell(obs.shape[-1], trunk.memory.size), weights, (obs, state))
        x = out if isinstance(out, Tensor) else out[0]
        for hidden in trunk.body.layers:
            x = torch.tanh(x @ hidden.weight.t() + hidden.bias)
        features.append(x)
    logits, value = policy.head.logits, policy.critic["head"]
    return features[0] @ logits.weight.t() + logits.bias, (features[-1] @ value.weight.t() + value.bias).squeeze(-1)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_sequences_of_one_step_are_a_feed_forward_network_of_observation_and_state(kind, shared):
    """Collected for real, with ends of episodes and rows that sit out; what is said of it and the gradient."""
    options = {"memory": {"kind": kind, "size": 7, "sequence": 1}, "shared": shared}
    learner = identity_learner("discrete", {"rollout_steps": 12, "epochs": 1, "learning_rate": 0.01}, inactive=0.2,
                               policy=options)
    learner.iterate()
    learner.iterate()
    policy, experience = learner.policy, learner.updater._experience_of(learner.buffer)
    order = torch.randperm(experience.size)
    batch = experience.take(order)
    assert batch.obs.shape[:2] == (1, 12 * 8) and batch.memory["actor.h"].abs().max() > 0
    slopes = Slopes(*torch.randn(3, experience.size))
    learner.updater.optimizer.zero_grad()
    with torch.no_grad():
        new = policy.evaluate(batch.obs, batch.action, batch.memory, batch.fresh)
        new.pull_back(slopes)
    got = {name: p.grad.clone() for name, p in policy.named_parameters()}

    rollout = learner.rollout  # [12, 8, ...]; with sequences of one step, memory too is stored for every step
    stored = {name: x.flatten(0, 1)[order] for name, x in rollout.memory.items()}
    logits, value = as_feed_forward(policy, rollout.obs.flatten(0, 1)[order], stored)
    chosen = torch.distributions.Categorical(logits=logits)
    expected = chosen.log_prob(rollout.action.flatten()[order]), chosen.entropy(), value
    for mine, theirs in zip(new[:3], expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)
    loss = sum((x * slope).sum() for x, slope in zip(expected, slopes, strict=True))
    wanted = torch.autograd.grad(loss, list(policy.parameters()))
    for (name, mine), theirs in zip(got.items(), wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}")
        assert theirs.abs().max() > 1e-3
