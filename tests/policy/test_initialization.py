"""Networks are initialised orthogonally, or as torch's own layers are."""
from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

from wavedash.config import PolicyConfig
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.memory import RecurrentLayer

SEEN = spaces.Dict({"camera": spaces.Box(0, 255, (16, 16, 3), np.uint8), "joints": spaces.Box(-1, 1, (40,))})


def policy(orthogonal: bool, memory: str = "none") -> ActorCritic:
    torch.manual_seed(0)
    config = PolicyConfig(hidden=[64, 48], orthogonal=orthogonal, memory={"kind": memory, "size": 32})
    return ActorCritic(SEEN, spaces.Discrete(7), config)


def layers(network: nn.Module) -> list[nn.Linear | nn.Conv2d]:
    return [module for module in network.modules() if isinstance(module, nn.Linear | nn.Conv2d)]


def is_orthogonal(weight: torch.Tensor) -> bool:
    rows = weight.detach().flatten(1)
    rows = rows if rows.shape[0] <= rows.shape[1] else rows.T
    gram = rows @ rows.T
    return torch.allclose(gram, gram[0, 0] * torch.eye(len(gram)), atol=1e-4 * float(gram[0, 0]))


def test_by_default_weights_are_orthogonal_and_biases_zero():
    made = policy(True)
    assert all(is_orthogonal(layer.weight) and not layer.bias.any() for layer in layers(made))
    assert made.head.logits.weight.norm(dim=1).max().item() == pytest.approx(0.01, rel=1e-3)


def test_torchs_own_initialisation_reaches_every_layer_heads_included():
    """Weights and biases are uniform within one over the root of the number of inputs, as torch documents."""
    made = policy(False)
    assert len(layers(made)) == len(layers(policy(True))) >= 10
    for layer in layers(made):
        bound = layer.weight[0].numel() ** -0.5
        for x in (layer.weight, layer.bias):
            assert x.abs().max().item() <= bound and x.any()
        assert not is_orthogonal(layer.weight) or layer.weight.shape[0] == 1
        if layer.weight.numel() > 300:
            assert layer.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.15)
    assert made.head.logits.weight.norm(dim=1).min().item() > 0.1


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_torchs_own_initialisation_of_memory(kind):
    made = [module for module in policy(False, kind).modules() if isinstance(module, RecurrentLayer)]
    assert len(made) == 2
    for layer in made:
        for x in layer.parameters():
            assert x.abs().max().item() <= 32**-0.5 and x.abs().mean().item() == pytest.approx(32**-0.5 / 2, rel=0.2)


def test_deviations_begin_as_configured_either_way():
    for orthogonal in (True, False):
        config = PolicyConfig(hidden=[8], orthogonal=orthogonal, initial_std=0.5)
        head = ActorCritic(SEEN, spaces.Box(-1, 1, (2,)), config).head
        assert head.log_std.exp().tolist() == pytest.approx([0.5, 0.5])
