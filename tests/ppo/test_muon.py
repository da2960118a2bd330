"""Muon against the singular values of every matrix, worked out in float64; everything else is AdamW's."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.ppo.combinations import Combination, differences, learner_of, saved_and_loaded
from tests.ppo.learners import identity_learner, trained_policy
from wavedash.ppo.muon import FlatMuon, hidden_matrices, orthogonalized
from wavedash.ppo.optimizer import FlatAdamW

MUON = {"optimizer": "muon"}
RATE, DECAY = 0.01, 0.1


def nearly_orthogonal(matrix: np.ndarray) -> np.ndarray:
    """Applies the polynomial of the paper to the singular values, which no other step of the iteration changes."""
    u, s, v = np.linalg.svd(matrix.astype(np.float64), full_matrices=False)
    s = s / (np.sqrt((s**2).sum()) + 1e-7)
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return u @ np.diag(s) @ v


@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (9, 4), (1, 5), (32, 20)])
def test_singular_values_become_about_one_and_singular_vectors_stay(shape):
    matrices = torch.randn(3, *shape, generator=torch.Generator().manual_seed(0))
    found = orthogonalized(matrices)
    for matrix, x in zip(matrices, found, strict=True):
        # Fifteen products of sums over at most 32 numbers, and each round multiplies errors by less than 3.5.
        np.testing.assert_allclose(x, nearly_orthogonal(matrix.numpy()), atol=15 * 32 * 3.5**5 * 2**-24)
        values = np.linalg.svd(x.numpy(), compute_uv=False)
        assert values.min() > 0.6 and values.max() < 1.3
    assert np.linalg.svd(matrices[0].numpy(), compute_uv=False).max() > 1.3 or shape == (1, 5)  # the control


def test_a_matrix_of_zeros_stays_one():
    assert not orthogonalized(torch.zeros(2, 4, 3)).any()


def made(kind: type[FlatAdamW], **options: Any) -> tuple[nn.Module, FlatAdamW]:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2))
    if kind is FlatMuon:
        options["matrices"] = [module[k].weight for k in range(3)]
    return module, kind({"policy": (module.parameters(), RATE)}, weight_decay=DECAY, max_grad_norm=0.5, **options)


def fill_gradients(module: nn.Module, seed: int) -> None:
    torch.manual_seed(seed)
    for p in module.parameters():
        assert p.grad is not None
        p.grad.copy_(torch.randn_like(p))


def test_steps_of_matrices_follow_the_formula_and_all_others_are_adamws():
    (module, muon), (twin, adam) = made(FlatMuon), made(FlatAdamW)
    means = [np.zeros(p.shape) for p in module.parameters()]
    for step in range(5):
        before = [p.detach().double().numpy().copy() for p in module.parameters()]
        for each, optimizer in ((module, muon), (twin, adam)):
            fill_gradients(each, step)
            optimizer.step()
        norm = np.sqrt(sum((p.grad.double() ** 2).sum().item() for p in module.parameters()))
        for k, (p, q) in enumerate(zip(module.parameters(), twin.parameters(), strict=True)):
            means[k] = 0.9 * means[k] + 0.1 * p.grad.double().numpy() * min(1.0, 0.5 / norm)
            if k in (0, 2, 4):
                size = 0.2 * np.sqrt(max(p.shape))
                expected = before[k] * (1 - RATE * DECAY) - RATE * size * nearly_orthogonal(means[k])
                np.testing.assert_allclose(p.detach(), expected, atol=1e-5)
                moved = (p.detach().double().numpy() - before[k] * (1 - RATE * DECAY)) / RATE
                assert 0.1 < np.sqrt((moved**2).mean()) < 0.3, "as far as a step of AdamW among noise"
                assert not torch.allclose(p, q, atol=1e-4), "the control: AdamW goes elsewhere"
            else:
                assert torch.equal(p, q)
        assert torch.equal(muon.exp_avg, adam.exp_avg)


@pytest.mark.parametrize("reason", ["nan", "skip", "nothing"])
def test_a_blocked_step_changes_nothing(reason):
    module, muon = made(FlatMuon)
    fill_gradients(module, 0)
    muon.step()
    before = [x.clone() for x in (muon.parameters, *muon.state_dict().values())]
    fill_gradients(module, 1)
    if reason == "nan":
        muon.gradient[3] = torch.nan
    elif reason == "nothing":
        muon.zero_grad()
    _, applied = muon.step(torch.tensor(True) if reason == "skip" else None)
    assert not applied
    assert all(torch.equal(a, b) for a, b in zip(before, (muon.parameters, *muon.state_dict().values()), strict=True))
    fill_gradients(module, 1)
    assert muon.step()[1] and not torch.equal(before[0], muon.parameters)


def test_a_frozen_group_stays():
    torch.manual_seed(0)
    module = nn.ModuleDict({"actor": nn.Linear(3, 3), "critic": nn.Linear(3, 3)})
    groups = {name: (part.parameters(), RATE) for name, part in module.items()}
    muon = FlatMuon(groups, matrices=[module["actor"].weight, module["critic"].weight])
    muon.frozen = frozenset({"actor"})
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    fill_gradients(module, 0)
    muon.step()
    assert all(torch.equal(p, before[name]) == name.startswith("actor") for name, p in module.named_parameters())


def test_a_policys_hidden_matrices_are_all_but_those_of_heads():
    policy = trained_policy("discrete", hidden=[7, 5], layer_norm=True, memory={"kind": "gru", "size": 4})
    names = {name for name, p in policy.named_parameters() if any(p is matrix for matrix in hidden_matrices(policy))}
    assert names == {f"{side}.trunk.{name}" for side in ("actor", "critic") for name in (
        "body.layers.0.weight", "body.layers.1.weight", "memory.layers.0.weight_in", "memory.layers.0.weight_rec")}


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_a_resumed_run_is_exact_and_may_change_its_optimiser(memory, tmp_path):
    combo = Combination(memory, "discrete", True, False, "fp32")
    first = learner_of(combo, ppo=MUON)
    first.iterate()
    second, third = (learner_of(combo, started=False, ppo=ppo) for ppo in (MUON, {}))
    state = saved_and_loaded(first, tmp_path)
    second.load_state(*state)
    third.load_state(*state)
    assert first.iterate().metrics == second.iterate().metrics
    assert differences(first, second) == set()
    third.iterate()
    assert not torch.equal(first.updater.optimizer.parameters, third.updater.optimizer.parameters)


def test_it_learns_the_identity():
    learner = identity_learner("discrete", {**MUON, "rollout_steps": 16, "epochs": 4, "minibatch_size": 32,
                                            "learning_rate": 3e-3, "gamma": 0.0}, rows=16)
    rewards = [learner.iterate().metrics["rollout/reward"] for _ in range(40)]
    assert np.mean(rewards[:3]) < 0.5 < 0.8 < np.mean(rewards[-3:])
