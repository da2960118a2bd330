"""The loss of imitation and its gradient, against log-likelihoods by torch.distributions over samples whose action is known."""
from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributions as D
from torch import Tensor

from tests.imitate.cloners import GRU, LSTM, SMALL, cloner_of, one_by_one
from tests.roundings import FUNCTION, assert_rounded
from wavedash.imitate.held_out import HeldOut, measure
from wavedash.imitate.playback import ACTION, KNOWN, Playback
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo import pieces
from wavedash.ppo.learner import Learner

WHOLE = {"epochs": 1, "minibatch_size": 1000, "max_grad_norm": None}
"""One gradient step over everything"""
CLONERS: dict[str, tuple[str, dict[str, Any]]] = {
    "discrete": ("discrete", {}),
    "discrete, masked, gru": ("discrete", {"memory": GRU, "masked": True}),
    "discrete, with a floor": ("discrete", {"policy": {"action_floor": 0.1}}),
    "multi-discrete, lstm": ("multi-discrete", {"memory": LSTM}),
    "multi-discrete, masked": ("multi-discrete", {"masked": True}),
    "gaussian, gru": ("gaussian", {"memory": GRU}),
    "gaussian-state": ("gaussian-state", {}),
    "tanh": ("tanh", {}),
    "tanh, gru": ("tanh", {"memory": GRU}),
    "beta": ("beta", {}),
    "confined": ("gaussian", {"policy": {"distribution": "confined"}}),
    "gsde": ("gsde", {}),
}


def collected(folder: Path, name: str, **changes: Any) -> Learner:
    """A learner that has collected one rollout and learned nothing from it."""
    action, options = CLONERS[name]
    options = {"unknown": 0.3, **options, **changes}
    learner = cloner_of(folder, action, **{**options, "ppo": {**WHOLE, **options.get("ppo", {})}})
    with torch.no_grad():
        torch.manual_seed(1)
        for p in learner.policy.parameters():
            if p.requires_grad:
                p.add_(0.3 * torch.randn_like(p))
    rollout = learner.buffer.next_slot()
    learner.complete(rollout, learner.collector.collect(rollout))
    return learner


def log_likelihood(distribution: Any, taken: Tensor, head: Any) -> Tensor:
    """By torch.distributions, of actions as the environment took them, in units where the range is [-1, 1]."""
    if hasattr(distribution, "log_probs"):
        return D.Categorical(logits=distribution.log_probs).log_prob(taken)
    if hasattr(distribution, "choices"):
        return D.Independent(D.Categorical(logits=distribution.choices.log_probs), 1).log_prob(taken)
    unit = (taken - head.centre) / head.half_range
    if hasattr(distribution, "normal"):
        normal = D.Normal(distribution.normal.mean, distribution.normal.log_std.exp())
        squashed = D.TransformedDistribution(D.Independent(normal, 1), [D.TanhTransform()])
        return squashed.log_prob(unit.clamp(-0.999, 0.999))
    if hasattr(distribution, "alpha"):
        shares = (unit.clamp(-0.999, 0.999) + 1) / 2
        return D.Independent(D.Beta(distribution.alpha, distribution.beta), 1).log_prob(shares) - unit.shape[-1] * torch.tensor(
            2.0).log()
    return D.Independent(D.Normal(distribution.mean, distribution.log_std.exp()), 1).log_prob(unit)


def expected_loss(learner: Learner, policy: ActorCritic) -> Tensor:
    """The mean over all samples of the rollout, where those that are not known count as 0."""
    rollout, length = learner.rollout, policy.sequence_length

    def like_it(x: Tensor) -> Tensor:
        return x.flatten(0, 1) if length is None else torch.cat(x.split(length), 1)

    obs = {key: like_it(x) for key, x in rollout.obs.items()} if isinstance(rollout.obs, dict) else like_it(rollout.obs)
    memory = None if length is None else {name: x.flatten(0, 1) for name, x in rollout.memory.items()}
    distribution, _ = policy(obs, memory, None if length is None else like_it(rollout.fresh))
    taken, known = like_it(rollout.labels[ACTION]), like_it(rollout.labels[KNOWN]).bool()
    assert not known.all()
    return -log_likelihood(distribution, taken, policy.head)[known].sum() / known.numel()


@pytest.mark.parametrize("name", CLONERS)
def test_the_gradient_is_that_of_the_log_likelihood_by_torch(name: str, tmp_path: Path) -> None:
    learner = collected(tmp_path, name)
    reference = copy.deepcopy(learner.policy)
    expected = expected_loss(learner, reference)
    expected.backward()
    share = learner.rollout.labels[KNOWN].mean()
    table = learner.updater.update(learner.buffer)
    roundings = 48 + 4 * 16 + 32 * FUNCTION
    loss = learner.updater.loss.metrics(table.means())["imitate/loss"]
    assert_rounded(loss, expected.detach() / share, roundings, torch.full((), 16.0))
    assert table["applied"].item() == 1 and table["optim/grad_norm"].item() > 1e-2
    for (part, p), q in zip(learner.policy.named_parameters(), reference.named_parameters(), strict=True):
        if p.requires_grad:
            wanted = torch.zeros_like(p) if q[1].grad is None else q[1].grad
            assert_rounded(p.grad, wanted, roundings, 16 * torch.ones(()), what=part)


def test_the_critic_is_not_trained_and_a_deviation_is(tmp_path: Path) -> None:
    learner = collected(tmp_path, "gaussian, gru")
    learner.updater.update(learner.buffer)
    assert learner.policy.head.log_std.grad.any()
    assert not any(p.grad.any() for name, p in learner.policy.named_parameters() if name.startswith("critic."))
    assert not learner.rollout.value.any(), "no critic was computed"


def test_an_unknown_action_teaches_nothing_but_its_observation_is_remembered(tmp_path: Path) -> None:
    gradients = {}
    for change in ("none", "action", "observation"):
        learner = collected(tmp_path, "discrete, masked, gru", masked=False)
        env, unknown = learner.env, ~learner.rollout.labels[KNOWN].bool()
        assert isinstance(env, Playback) and unknown.any()
        if change == "action":
            learner.rollout.labels[ACTION][unknown] = 4.0
        if change == "observation":
            assert isinstance(learner.rollout.obs, Tensor)
            learner.rollout.obs[unknown] += 1.0
        learner.updater.update(learner.buffer)
        gradients[change] = learner.updater.optimizer.gradient.clone()
    assert torch.equal(gradients["none"], gradients["action"]) and gradients["none"].any()
    assert not torch.equal(gradients["none"], gradients["observation"])


@pytest.mark.parametrize("name", ["discrete, masked, gru", "multi-discrete, lstm", "multi-discrete, masked", "tanh, gru",
                                  "beta"])
@pytest.mark.parametrize("most", [3, 1000])
def test_held_out_loss_and_accuracy_are_those_of_samples_one_by_one(name: str, most: int, tmp_path: Path,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("STEPS_AT_ONCE", "EPISODES_AT_ONCE"):
        monkeypatch.setattr(f"wavedash.imitate.held_out.{limit}", most)
    learner = collected(tmp_path, name)
    (told,) = learner.listeners
    assert isinstance(told, HeldOut)
    found = measure(learner.policy, told.samples, told.held_out)
    loss = right = count = 0.0
    head = learner.policy.head
    for distribution, action, known in one_by_one(learner, told.samples, told.held_out):
        if not known:
            continue
        count += 1
        loss -= float(log_likelihood(distribution, action.unsqueeze(0), head))
        if head.num_masked:
            right += float((distribution.mode()[0] == action).float().mean())
        else:
            unit = (action - head.centre) / head.half_range
            right += float((head.unit(distribution.mode())[0] - unit).square().mean())
    second = "imitate/accuracy" if head.num_masked else "imitate/error"
    assert found["imitate/loss"] == pytest.approx(loss / count, rel=1e-4)
    assert found[second] == pytest.approx(right / count if head.num_masked else (right / count) ** 0.5, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("changes", [
    {"ppo": {**SMALL, "accumulate": 3}}, {"ppo": {**SMALL, "buffer_rollouts": 2}}, {"precision": "bf16"},
    {"precision": "fp16"}, {"ppo": {**SMALL, "optimizer": "muon"}}, {"ppo": {**SMALL, "normalize_obs": True}},
], ids=str)
@pytest.mark.parametrize("action", ["multi-discrete", "tanh"])
def test_the_machinery_is_that_of_ppo(action: str, changes: dict[str, Any], tmp_path: Path) -> None:
    """It learns in every precision, from several rollouts, by parts of minibatches, with another optimiser."""
    learner = cloner_of(tmp_path, action, GRU, **changes)
    reports = [learner.iterate().metrics for _ in range(20)]
    assert reports[-1]["imitate/loss"] < reports[0]["imitate/loss"] - 0.1
    assert all(report["optim/skipped"] == 0 for report in reports)


def test_in_pieces_by_threads_it_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = []
    for in_pieces in (False, True):
        monkeypatch.setattr(pieces, "SMALL_MATRIX", 1 if in_pieces else 10**18)
        learner = cloner_of(tmp_path, "discrete", GRU, unknown=0.3)
        for _ in range(3):
            learner.iterate()
        assert (learner.updater._pieces is not None) is in_pieces
        weights.append(learner.updater.optimizer.parameters.clone())
    torch.testing.assert_close(*weights, rtol=1e-3, atol=1e-4)
