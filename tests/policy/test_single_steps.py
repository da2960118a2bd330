"""Sequences of a single step: a policy with memory is then a feed-forward network of (observation, stored state)."""
from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from tests.policy.test_memory import NAMES
from tests.ppo.learners import identity_learner
from tests.roundings import FUNCTION, assert_within, sway
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.evaluation import OutputGradients
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
    """Log-probabilities, values and gradients agree on a real rollout with ends of episodes and inactive rows."""
    options = {"memory": {"kind": kind, "size": 7, "sequence": 1}, "shared": shared}
    learner = identity_learner("discrete", {"rollout_steps": 12, "epochs": 1, "learning_rate": 0.01}, inactive=0.2,
                               policy=options)
    learner.iterate()
    learner.iterate()
    policy, experience = learner.policy, learner.updater.experience_of(learner.buffer)
    order = torch.randperm(experience.size)
    batch = experience.take(order)
    assert batch.obs.shape[:2] == (1, 12 * 8) and batch.memory["actor.h"].abs().max() > 0
    of_outputs = OutputGradients(*torch.randn(3, experience.size))
    learner.updater.optimizer.zero_grad()
    with torch.no_grad():
        new = policy.evaluate(batch.obs, batch.action, batch.memory, batch.fresh)
        new.backward(of_outputs)
    got = {name: p.grad.clone() for name, p in policy.named_parameters()}

    rollout = learner.rollout  # [12, 8, ...]; with sequences of one step, memory too is stored for every step
    stored = {name: x.flatten(0, 1)[order] for name, x in rollout.memory.items()}
    seen, action = rollout.obs.flatten(0, 1)[order], rollout.action.flatten()[order]

    def exact(weights: dict[str, Tensor], seen: Tensor, stored: State) -> dict[str, Tensor]:
        twin = deepcopy(policy).double()
        twin.load_state_dict(weights, strict=False)
        logits, value = as_feed_forward(twin, seen, stored)
        chosen = torch.distributions.Categorical(logits=logits)
        said = chosen.log_prob(action), chosen.entropy(), value
        loss = sum((x * of_output).sum() for x, of_output in zip(said, of_outputs, strict=True))
        wanted = torch.autograd.grad(loss, list(twin.parameters()))
        return {**dict(zip(OutputGradients._fields, said, strict=True)), **dict(zip(got, wanted, strict=True))}

    inputs = [{name: p.detach() for name, p in policy.named_parameters()}, seen, stored]
    bound = sway(exact, inputs, experience.size + 3 * 16 + 8 * FUNCTION)
    expected = exact(inputs[0], seen.double(), {name: x.double() for name, x in stored.items()})
    for name, mine in {**dict(zip(OutputGradients._fields, new[:3], strict=True)), **got}.items():
        assert_within(mine, expected[name], bound[name], name)
        assert expected[name].abs().max() > 1e-3
