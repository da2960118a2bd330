"""Epochs and minibatches: which samples are visited when, and when an update stops."""
from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.ppo.learners import made_up_experience, run_config, trained_policy
from tests.roundings import FUNCTION, assert_rounded
from wavedash.ppo.experience import Batch, normalized
from wavedash.ppo.rollout import RolloutBuffer
from wavedash.ppo.update import APPLIED, Updater, UpdateTable

KL = "policy/kl"


def visits(samples: int, **ppo: Any) -> list[list[int]]:
    """The samples of every minibatch of one update, identified by the number that each carries as its return."""
    policy = trained_policy("discrete")
    buffer = made_up_experience(policy, samples, 1, inactive=0.0)
    buffer.samples.returns.copy_(torch.arange(samples))
    updater, seen = Updater(policy, run_config(ppo).ppo, seed=0), []
    step = updater._gradient_step

    def watched(batch: Batch) -> Any:
        seen.append(batch.stored.returns.int().tolist())
        obs, action = buffer.samples.obs[seen[-1]], buffer.samples.action[seen[-1]]
        assert torch.equal(batch.obs, obs) and torch.equal(batch.action, action), "fields of a sample stay together"
        return step(batch)

    updater._gradient_step = watched
    updater.update(buffer)
    return seen


@pytest.mark.parametrize(("samples", "size", "sizes"), [
    (100, 32, [25, 25, 25, 25]), (101, 50, [34, 34, 33]), (10, 64, [10]), (7, 1, [1] * 7), (9, 4, [3, 3, 3]), (8, 4, [4, 4]),
])
def test_every_sample_is_visited_once_an_epoch_in_even_minibatches(samples, size, sizes):
    seen = visits(samples, minibatch_size=size, epochs=3)
    assert [len(part) for part in seen] == sizes * 3
    assert max(sizes) - min(sizes) <= 1 and max(sizes) <= size
    flat = [sample for part in seen for sample in part]
    epochs = [flat[k : k + samples] for k in range(0, len(flat), samples)]
    assert all(sorted(epoch) == list(range(samples)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2] and epochs[0] != list(range(samples))


def one_update(**ppo: Any) -> tuple[torch.Tensor, UpdateTable]:
    """The weights after it, and its table."""
    policy = trained_policy("discrete")
    buffer = made_up_experience(policy, 10, 5, inactive=0.3)
    updater = Updater(policy, run_config({"learning_rate": 1e-2, **ppo}).ppo, seed=0)
    return updater.optimizer.parameters, updater.update(buffer)


@pytest.mark.parametrize("normalize", ["batch", "minibatch", "off"])
def test_accumulated_pieces_make_the_gradient_of_the_whole(normalize):
    # Epsilon is as large as the gradients, so that Adam enlarges no rounding.
    settings = {"epochs": 2, "minibatch_size": 25, "normalize_advantage": normalize, "adam_eps": 1.0, "learning_rate": 0.5}
    whole, whole_table = one_update(**settings)
    for pieces in (2, 3, 25, 60):
        split, split_table = one_update(**settings, accumulate=pieces)
        # A gradient sums 25 samples through layers of 16; four steps move the weights by at most half of it each.
        roundings = 4 * (25 + 2 * 16 + 5 * FUNCTION)
        assert_rounded(split_table.values, whole_table.values, roundings, whole_table.values.abs().clamp(min=1.0))
        assert_rounded(split, whole, roundings, whole.abs().clamp(min=1.0))
    other, _ = one_update(**{**settings, "learning_rate": 0.49})
    with pytest.raises(AssertionError):
        assert_rounded(other, whole, roundings, whole.abs().clamp(min=1.0))


@pytest.mark.parametrize("normalize", ["batch", "minibatch", "off"])
def test_minibatches_of_one_sample_give_finite_steps(normalize):
    weights, table = one_update(epochs=1, minibatch_size=1, normalize_advantage=normalize)
    assert weights.isfinite().all() and table.values.isfinite().all()
    assert 0 < int(table[APPLIED].sum()) < len(table.values), "inactive samples alone make no step"


def test_a_batch_without_a_valid_sample_changes_nothing():
    policy = trained_policy("discrete")
    buffer = made_up_experience(policy, 4, 3, inactive=1.0)
    updater = Updater(policy, run_config({"weight_decay": 0.1}).ppo, seed=0)
    before = updater.optimizer.parameters.clone()
    table = updater.update(buffer)
    assert torch.equal(updater.optimizer.parameters, before) and not table[APPLIED].any()
    assert table.values.isfinite().all()


def test_advantages_are_normalised_over_valid_samples_only():
    advantage = torch.tensor([1.0, 3.0, 1e6, 5.0])
    out = normalized(advantage, torch.tensor([1.0, 1.0, 0.0, 1.0]))
    torch.testing.assert_close(out[[0, 1, 3]], torch.tensor([-1.0, 0.0, 1.0]) * (3 / 2) ** 0.5)


# --- the early stop --------------------------------------------------------------------------------------------------


def early_stop(target_kl: float | None, steps: int | None = None) -> tuple[Updater, UpdateTable]:
    """Four epochs over a rollout as it was collected (the ratio is one); with `steps` only so many gradient steps are taken."""
    policy = trained_policy("discrete")
    buffer = made_up_experience(policy, 10, 5, inactive=0.3)
    with torch.no_grad():
        buffer.samples.log_prob.copy_(policy.evaluate(buffer.samples.obs, buffer.samples.action).log_prob)
    config = run_config({"learning_rate": 1e-2, "epochs": 4, "minibatch_size": 25, "target_kl": target_kl}).ppo
    updater, taken = Updater(policy, config, seed=0), []
    step = updater._gradient_step

    def counted(batch: Batch) -> Any:
        taken.append(1)
        return step(batch) if steps is None or len(taken) <= steps else torch.zeros(len(updater.columns))

    updater._gradient_step = counted
    return updater, updater.update(buffer)


def test_past_the_target_kl_nothing_more_is_applied():
    free, free_table = early_stop(None)
    target = float(free_table[KL][4])
    stopped, table = early_stop(target * 0.999)
    first = int((table[KL] > target * 0.999).nonzero()[0, 0])
    assert 0 < first < len(table.values) - 1
    assert table[APPLIED][:first].all() and not table[APPLIED][first:].any()
    assert all(torch.equal(table[name][: first + 1], free_table[name][: first + 1]) for name in stopped.loss.terms)
    cut_short, _ = early_stop(None, steps=first)
    assert torch.equal(stopped.optimizer.parameters, cut_short.optimizer.parameters)
    assert not torch.equal(stopped.optimizer.parameters, free.optimizer.parameters)


def test_the_next_update_starts_afresh_after_an_early_stop():
    updater, table = early_stop(1e-3)
    assert not table[APPLIED][-1]
    buffer = made_up_experience(updater.policy, 10, 5, inactive=0.0)
    with torch.no_grad():
        buffer.samples.log_prob.copy_(updater.policy.evaluate(buffer.samples.obs, buffer.samples.action).log_prob)
    assert updater.update(buffer)[APPLIED][0]


# --- the buffer ------------------------------------------------------------------------------------------------------


def test_the_buffer_keeps_the_latest_rollouts():
    policy = trained_policy("discrete")
    head = policy.head
    buffer = RolloutBuffer(3, 2, 4, policy.observation_space, head.action_shape, head.action_dtype, torch.device("cpu"))
    for k in range(1, 8):
        buffer.next_slot().reward.fill_(k)
        assert sorted(set(buffer.samples.reward.tolist())) == list(range(max(1, k - 2), k + 1))
        assert buffer.samples.reward.shape == (min(k, 3) * 8,)
        assert (buffer.slot(buffer.newest).reward == k).all()
