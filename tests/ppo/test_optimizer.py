"""The flat optimiser against torch's AdamW, and its guard against gradients that are not finite."""
from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tests.oracle import AdamW
from tests.roundings import assert_rounded, assert_within, gamma
from wavedash.ppo.optimizer import FlatAdamW

ROUNDINGS = 20
"""A step of AdamW rounds so often, in numbers of the size of the step; clipping adds the roundings of the norm."""


def twins() -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    made = [nn.ModuleDict({"actor": nn.Linear(5, 4), "critic": nn.Linear(4, 3)}) for _ in range(2)]
    made[1].load_state_dict(made[0].state_dict())
    return made[0], made[1]


def flat_for(module: nn.Module, rates=(3e-3, 1e-2), **kwargs) -> FlatAdamW:
    groups = {name: (module[name].parameters(), rate) for name, rate in zip(("actor", "critic"), rates, strict=True)}
    return FlatAdamW(groups, **kwargs)


def fill_gradients(module: nn.Module, seed: int, size: float) -> None:
    torch.manual_seed(seed)
    for p in module.parameters():
        g = size * torch.randn_like(p)
        p.grad = g if p.grad is None else p.grad.copy_(g)


@pytest.mark.parametrize("max_grad_norm", [None, 0.5])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_two_groups_step_as_torchs_adamw_does(max_grad_norm, weight_decay):
    module, twin = twins()
    ours = flat_for(module, betas=(0.8, 0.99), eps=1e-5, weight_decay=weight_decay, max_grad_norm=max_grad_norm)
    groups = [{"params": twin[name].parameters(), "lr": rate} for name, rate in (("actor", 3e-3), ("critic", 1e-2))]
    theirs = torch.optim.AdamW(groups, betas=(0.8, 0.99), eps=1e-5, weight_decay=weight_decay)
    for step in range(20):
        size = [0.01, 3.0][step % 2]  # below and above the clip
        ours.zero_grad()
        fill_gradients(module, step, size)
        fill_gradients(twin, step, size)
        norm, applied = ours.step()
        if max_grad_norm is not None:
            expected = nn.utils.clip_grad_norm_(twin.parameters(), max_grad_norm)
            assert_rounded(norm, expected, 2 * ours.parameters.numel())
        theirs.step()
        assert bool(applied)
        for p, q in zip(module.parameters(), twin.parameters(), strict=True):
            # The gradients are the same: each step adds the roundings of moments, quotient and weight, of numbers below 1.
            assert_rounded(p, q, ROUNDINGS * (step + 1), torch.ones_like(q))


def test_a_step_is_the_papers_formula():
    module, _ = twins()
    ours = flat_for(module, rates=(1e-2, 1e-2), weight_decay=0.1)
    formula, weights = AdamW(1e-2, decay=0.1), ours.parameters.double().numpy()
    for step in range(10):
        fill_gradients(module, step, 1.0)
        weights = formula.step(weights, ours.gradient.double().numpy())
        ours.step()
    assert_rounded(ours.parameters, weights, ROUNDINGS * 10, np.ones_like(weights))


def everything(optimizer: FlatAdamW) -> list[torch.Tensor]:
    return [x.clone() for x in (optimizer.parameters, *optimizer.state_dict().values())]


@pytest.mark.parametrize("reason", ["nan", "inf", "-inf", "overflow", "skip", "nothing valid"])
def test_a_blocked_step_leaves_weights_moments_and_counts_as_they_are(reason):
    module, twin = twins()
    ours, unharmed = flat_for(module, max_grad_norm=0.5, weight_decay=0.1), flat_for(twin, max_grad_norm=0.5, weight_decay=0.1)
    for step in range(3):
        for m, o in ((module, ours), (twin, unharmed)):
            fill_gradients(m, step, 1.0)
            o.step()
    before = everything(ours)
    fill_gradients(module, 9, 1.0)
    skip = torch.tensor(reason == "skip")
    if reason in ("nan", "inf", "-inf"):
        ours.gradient[3] = float(reason)
    elif reason == "overflow":
        for p in module.parameters():
            p.grad.fill_(3e38)  # finite, but its norm is not
    elif reason == "nothing valid":
        ours.zero_grad()
    _, applied = ours.step(skip)
    assert not bool(applied)
    assert all(torch.equal(a, b) for a, b in zip(everything(ours), before, strict=True))
    for m, o in ((module, ours), (twin, unharmed)):
        fill_gradients(m, 10, 1.0)
        assert bool(o.step()[1])
    assert all(torch.equal(a, b) for a, b in zip(everything(ours), everything(unharmed), strict=True))


def test_parameters_stay_views_of_the_flat_buffer():
    module, twin = twins()
    ours = flat_for(module)
    module.load_state_dict({name: x + 1 for name, x in twin.state_dict().items()})
    written = torch.cat([(p + 1).flatten() for p in twin.parameters()])
    torch.testing.assert_close(ours.parameters[ours.parameters != 0], written[written != 0])  # zeros lie between parameters


def test_frozen_parameters_are_left_alone():
    module, twin = twins()
    module["actor"].requires_grad_(False)
    ours = flat_for(module, weight_decay=0.5)
    trained = [int((p != 0).sum()) for p in module["critic"].parameters()]
    assert int((ours.parameters != 0).sum()) == sum(trained)
    ours.gradient.normal_()
    ours.step()
    assert torch.equal(module["actor"].weight, twin["actor"].weight)
    assert not torch.equal(module["critic"].weight, twin["critic"].weight)


def test_the_rate_is_the_groups_own_times_the_multiplier():
    """A first Adam step moves every weight by the rate, whatever the gradient."""
    module, _ = twins()
    ours = flat_for(module, eps=1e-12)
    ours.set_rate_multiplier(0.25)
    before = {name: module[name].weight.detach().clone() for name in ("actor", "critic")}
    fill_gradients(module, 0, 1.0)
    ours.step()
    for name, rate in (("actor", 3e-3), ("critic", 1e-2)):
        moved = (module[name].weight.detach() - before[name]).abs()
        assert_within(moved, torch.full_like(moved, 0.25 * rate), gamma(ROUNDINGS) * rate + gamma(2) * before[name].abs())
