"""Updates that learn from the largest advantages only (`ppo.keep_samples`)."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.oracle import normalized_by_numpy
from tests.ppo.combinations import Combination, learner_of
from tests.ppo.learners import made_up_experience, run_config, trained_policy
from tests.roundings import FUNCTION, assert_rounded
from wavedash.ppo.experience import Batch
from wavedash.ppo.rollout import RolloutBuffer
from wavedash.ppo.update import Updater

STEPS, ROWS = 20, 5
SAMPLES = STEPS * ROWS


def numbered(inactive: float, capacity: int = 1) -> tuple[Any, RolloutBuffer]:
    """A policy and made-up experience, each sample of which carries its number as its return."""
    policy = trained_policy("discrete")
    buffer = made_up_experience(policy, STEPS, ROWS, inactive, capacity)
    buffer.samples.returns.copy_(torch.arange(SAMPLES * capacity))
    return policy, buffer


def minibatches(policy: Any, buffer: RolloutBuffer, **ppo: Any) -> list[Batch]:
    """The minibatches of one update."""
    updater, seen = Updater(policy, run_config(ppo).ppo, seed=0), []
    step = updater._gradient_step

    def watched(batch: Batch) -> Any:
        seen.append(batch._replace(numbers=batch.numbers.clone()))
        return step(batch)

    updater._gradient_step = watched
    updater.update(buffer)
    return seen


def by_size(buffer: RolloutBuffer) -> np.ndarray:
    """The numbers of all active samples, the largest normalised advantage first, by numpy."""
    flat = buffer.samples
    size = np.abs(normalized_by_numpy(flat.advantage, flat.active).numpy())
    order = np.argsort(-size)
    return order[flat.active.numpy()[order]]


@pytest.mark.parametrize(("share", "capacity"), [(0.5, 1), (0.25, 1), (0.3, 2), (0.001, 1)])
def test_every_epoch_visits_the_samples_with_the_largest_advantages_once(share, capacity):
    policy, buffer = numbered(0.3, capacity)
    kept = max(1, round(share * SAMPLES * capacity))
    expected = sorted(by_size(buffer)[:kept].tolist())
    smallest = sorted(by_size(buffer)[-kept:].tolist())
    assert expected != smallest
    # The mean is far from 0: without the normalisation over the whole batch others would be the largest.
    raw = np.argsort(-np.abs(buffer.samples.advantage.numpy()) * buffer.samples.active.numpy())[:kept]
    assert sorted(raw.tolist()) != expected or kept == 1
    seen = [batch.stored for batch in minibatches(policy, buffer, keep_samples=share, minibatch_size=8, epochs=3)]
    per_epoch = -(-kept // 8)
    assert len(seen) == 3 * per_epoch
    starts = range(0, len(seen), per_epoch)
    epochs = [torch.cat([part.returns.int() for part in seen[k : k + per_epoch]]).tolist() for k in starts]
    assert all(sorted(epoch) == expected for epoch in epochs)
    assert kept == 1 or epochs[0] != epochs[1] != epochs[2]


def test_advantages_are_normalised_over_the_whole_batch_before_samples_are_dropped():
    policy, buffer = numbered(0.3)
    (batch,) = minibatches(policy, buffer, keep_samples=0.4, minibatch_size=10**6, epochs=1)
    index = batch.stored.returns.long()
    whole = normalized_by_numpy(buffer.samples.advantage, buffer.samples.active)
    assert_rounded(batch.stored.advantage, whole[index], 2 * SAMPLES, whole.abs().max())
    kept = torch.zeros(SAMPLES, dtype=torch.bool)
    kept[index] = True
    alone = normalized_by_numpy(buffer.samples.advantage, kept)  # the control: among themselves they would be others
    with pytest.raises(AssertionError):
        assert_rounded(batch.stored.advantage, alone[index], 2 * SAMPLES, alone.abs().max())


def test_inactive_samples_are_dropped_first_and_nothing_else_changes():
    """Where the share is that of the active samples, one epoch in one minibatch gives the gradient of all samples."""
    tables, weights = [], []
    for keep in (1.0, None, 0.5):
        policy, buffer = numbered(0.4)
        active = int(buffer.samples.active.sum())
        assert active < SAMPLES
        buffer.samples.returns.copy_(buffer.samples.value + 1.0)
        config = run_config({"keep_samples": active / SAMPLES if keep is None else keep, "minibatch_size": 10**6, "epochs": 1,
                             "adam_eps": 1.0, "learning_rate": 0.5}).ppo
        updater = Updater(policy, config, seed=0)
        tables.append(updater.update(buffer).values)
        weights.append(updater.optimizer.parameters.clone())
    # A gradient sums all samples through layers of 16; with a large epsilon Adam enlarges no rounding.
    roundings = SAMPLES + 2 * 16 + 5 * FUNCTION
    assert_rounded(tables[1], tables[0], roundings, tables[0].abs().clamp(min=1.0))
    assert_rounded(weights[1], weights[0], roundings, weights[0].abs().clamp(min=1.0))
    with pytest.raises(AssertionError):
        assert_rounded(weights[2], weights[0], roundings, weights[0].abs().clamp(min=1.0))


@pytest.mark.parametrize("memory", ["gru", "lstm"])
def test_of_a_policy_with_memory_whole_sequences_are_kept_by_their_largest_advantage(memory):
    learner = learner_of(Combination(memory, "discrete", False, False, "fp32"), ppo={"keep_samples": 0.5, "epochs": 1})
    learner.iterate()
    experience = learner.updater.experience
    assert experience is not None and experience.length is not None
    rows, length = experience.rows, experience.length
    advantage, weight = (x.reshape(-1, rows) for x in (experience.all.stored.advantage, experience.all.stored.weight))
    largest = []
    for number in range(experience.size):
        begin, row = number // rows * length, number % rows
        own = [abs(float(a)) for a, w in zip(advantage[begin : begin + length, row], weight[begin : begin + length, row],
                                             strict=True) if w]
        largest.append(max(own, default=-1.0))
    expected = set(np.argsort(-np.array(largest))[: experience.size // 2].tolist())
    found = experience.largest_advantages(0.5)
    assert found is not None and set(found.tolist()) == expected and len(found) == experience.size // 2
    batch = experience.take(found)
    assert sorted(batch.stored.advantage.abs().masked_fill(batch.stored.weight == 0, -1.0).amax(0).tolist()) == pytest.approx(
        sorted(largest[number] for number in expected))


def test_keeping_all_is_the_update_without_the_option():
    found = []
    for ppo in ({}, {"keep_samples": 1.0}, {"keep_samples": 0.99}):
        policy, buffer = numbered(0.3)
        updater = Updater(policy, run_config({"minibatch_size": 16, "epochs": 2, **ppo}).ppo, seed=0)
        updater.update(buffer)
        found.append(updater.optimizer.parameters.clone())
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])
