"""A minibatch in parts: the gradient, the metrics and every decision are those of the whole, and a run that finds out that its
memory is too small goes on as one that was told so from the start."""
from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.ppo.combinations import Combination, learner_of
from tests.ppo.learners import made_up_experience, run_config, trained_policy
from tests.roundings import FUNCTION, assert_rounded
from tests.toy_vec_envs import IdentityEnv
from wavedash.assembly import make_policy
from wavedash.config import PPOConfig
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.compiled import Compiled
from wavedash.ppo.experience import Batch
from wavedash.ppo.learner import Learner
from wavedash.ppo.ppo_loss import PPOLoss
from wavedash.ppo.split import Split
from wavedash.ppo.update import APPLIED, GRAD_NORM, Updater, UpdateTable

SAMPLES = 50


# --- the same gradient -----------------------------------------------------------------------------------------------


class Sizes(PPOLoss):
    """PPO's loss, which notes how many samples it was called with."""

    def __init__(self, config: PPOConfig) -> None:
        super().__init__(config)
        self.seen: list[int] = []

    def add_gradient(self, policy: ActorCritic, batch: Batch, scale: Tensor | None) -> Any:
        self.seen.append(batch.flat.weight.numel())
        return super().add_gradient(policy, batch, scale)


@torch.no_grad()
def one_update(kind: str = "discrete", fresh: bool = False, **ppo: Any) -> tuple[Tensor, UpdateTable, list[int]]:
    """The weights after it, its table, and the sizes of the parts that were computed. `fresh`: the policy took the actions
    just now, so that the ratio is one."""
    policy = trained_policy(kind, masked=kind == "discrete")
    buffer = made_up_experience(policy, 10, SAMPLES // 10, inactive=0.3)
    if fresh:
        buffer.samples.log_prob.copy_(policy.evaluate(buffer.samples.obs, buffer.samples.action).log_prob)
    config = run_config({"adam_eps": 1.0, "learning_rate": 0.5, "epochs": 2, "minibatch_size": 25, **ppo}).ppo
    loss = Sizes(config)
    updater = Updater(policy, config, seed=0, loss=loss)
    return updater.optimizer.parameters, updater.update(buffer), loss.seen


@pytest.mark.parametrize("kind", ["discrete", "gaussian"])
@pytest.mark.parametrize("options", [
    {"normalize_advantage": "batch"}, {"normalize_advantage": "minibatch", "value_clip": 0.2}, {"normalize_advantage": "off"},
    {"keep_samples": 0.5, "entropy_coef": 0.1}, {"max_grad_norm": 0.01}, {"optimizer": "muon", "max_grad_norm": None},
], ids=str)
def test_parts_make_the_gradient_of_the_whole(kind, options):
    whole, whole_table, _ = one_update(kind, **options)
    # A gradient sums 25 samples through layers of 16; four steps move the weights by at most half of it each. Muon multiplies
    # the errors of a gradient by five rounds with a slope of up to 3.5 at zero.
    roundings = 4 * (25 + 2 * 16 + 5 * FUNCTION) * (3.5**5 if "optimizer" in options else 1)
    size = whole_table.values.abs().clamp(min=1.0)
    for most in (1, 7, 12, 24):
        split, table, seen = one_update(kind, **options, microbatch_size=most)
        assert max(seen) <= most and sum(seen) == 2 * (25 if "keep_samples" in options else SAMPLES)
        assert_rounded(table.values, whole_table.values, roundings, size)
        assert_rounded(split, whole, roundings, whole.abs().clamp(min=1.0))
    other, _, _ = one_update(kind, **options, microbatch_size=7, learning_rate=0.49)
    with pytest.raises(AssertionError):
        assert_rounded(other, whole, roundings, whole.abs().clamp(min=1.0))


def test_the_finer_of_two_options_counts():
    assert set(one_update(microbatch_size=13, accumulate=5)[2]) == {5}
    assert set(one_update(microbatch_size=4, accumulate=2)[2]) <= {3, 4}
    assert set(one_update(microbatch_size=25)[2]) == set(one_update(microbatch_size=1000)[2]) == {25}


def test_an_early_stop_is_decided_by_the_whole_minibatch():
    _, free, _ = one_update(fresh=True)
    target = float(free["policy/kl"].max()) * 0.999
    whole, split = (one_update(fresh=True, target_kl=target, microbatch_size=most)[1] for most in (None, 3))
    assert whole[APPLIED].tolist() == split[APPLIED].tolist() and 0 < int(whole[APPLIED].sum()) < len(whole.values)


def test_one_part_that_overflows_skips_the_step_of_the_whole_minibatch():
    policy = trained_policy("discrete")
    buffer = made_up_experience(policy, 10, 5, inactive=0.0)
    buffer.samples.returns[17] = torch.inf
    updater = Updater(policy, run_config({"minibatch_size": 25, "epochs": 1, "microbatch_size": 5}).ppo, seed=0)
    table = updater.update(buffer)
    assert sorted(table[APPLIED].tolist()) == [0.0, 1.0] and not table[GRAD_NORM][table[APPLIED] == 0].isfinite().any()
    assert updater.optimizer.parameters.isfinite().all()


@pytest.mark.parametrize("memory", ["gru", "lstm"])
def test_sequences_stay_whole_and_their_gradients_add_up(memory):
    # Epsilon is as large as the gradients, so that Adam enlarges no rounding.
    options = {"epochs": 1, "minibatch_size": 10**6, "adam_eps": 1.0, "max_grad_norm": None}
    combination = Combination(memory, "discrete", False, False, "fp32")
    learners = [learner_of(combination, ppo={**options, "microbatch_size": most}) for most in (None, 1, 18)]
    whole, *parts = ((learner.iterate().metrics, learner.updater.optimizer.parameters) for learner in learners)
    length, samples = learners[0].policy.sequence_length, learners[0].buffer.all.reward.numel()
    assert length is not None and 18 % length and samples > 18, "the size of a part is no multiple of a sequence"
    roundings = samples + length * (2 * 16 + 5 * FUNCTION)
    for metrics, weights in parts:
        assert_rounded(weights, whole[1], roundings, whole[1].abs().clamp(min=1.0))
        for name in ("loss/policy", "loss/value", "policy/entropy", "policy/kl"):
            assert_rounded(metrics[name], whole[0][name], roundings, max(1.0, abs(whole[0][name])), what=name)


def test_with_half_precision_parts_round_like_their_whole():
    """The scale of the loss is the same for all parts of a minibatch, and adapts once."""
    combination = Combination("none", "discrete", False, False, "fp16")
    options = {"epochs": 1, "minibatch_size": 10**6}
    whole, split = (learner_of(combination, ppo={**options, "microbatch_size": most}) for most in (None, 5))
    for learner in (whole, split):
        learner.updater.scale.value.fill_(2.0**40)
        learner.iterate()
    assert float(whole.updater.scale.value) == float(split.updater.scale.value) == 2.0**39, "one overflow, one step skipped"
    for learner in (whole, split):
        learner.updater.scale.value.fill_(2.0**10)
        assert learner.iterate().metrics["optim/gradient_steps"] == 1


# --- memory that is too small ----------------------------------------------------------------------------------------


class SmallMemory(PPOLoss):
    """PPO's loss on a device that has no memory for more than so many samples at once. It fails after the backward pass, when
    gradients were written already."""

    def __init__(self, config: PPOConfig, most: int) -> None:
        super().__init__(config)
        self.most, self.calls, self.failures = most, 0, 0

    def add_gradient(self, policy: ActorCritic, batch: Batch, scale: Tensor | None) -> tuple[Tensor, ...]:
        terms = super().add_gradient(policy, batch, scale)
        self.calls += 1
        if batch.flat.weight.numel() > self.most:
            self.failures += 1
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return terms


PPO = {"rollout_steps": 8, "minibatch_size": 32, "epochs": 2, "normalize_obs": True, "target_kl": 1.0,
       "schedule": {"kind": "kl"}}


def learner_with(most: int | None, listeners: Sequence[Any] = (), **ppo: Any) -> Learner:
    """64 samples an iteration, two minibatches an epoch; `most`: samples that fit into the memory."""
    config = run_config({**PPO, **ppo})
    env = IdentityEnv(trained_policy("discrete").action_space, rows=8)
    loss = None if most is None else SmallMemory(config.ppo, most)
    learner = Learner(env, make_policy(env, config), config, listeners, loss=loss)
    learner.start()
    return learner


def loss_of(learner: Learner) -> SmallMemory:
    assert isinstance(learner.updater.loss, SmallMemory)
    return learner.updater.loss


def everything(learner: Learner) -> dict[str, Any]:
    tensors, plain = learner.state()
    return {**{f"{file}.{name}": x.clone() for file, part in tensors.items() for name, x in part.items()}, **plain}


def same(one: dict[str, Any], other: dict[str, Any], but: Sequence[str] = ()) -> bool:
    assert one.keys() == other.keys()
    return all(torch.equal(x, other[name]) if isinstance(x, Tensor) else json.dumps(x) == json.dumps(other[name])
               for name, x in one.items() if name not in but)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_an_update_that_runs_out_of_memory_is_done_again_in_smaller_parts(caplog, optimizer):
    """Bit for bit the run that was told the size of the parts beforehand."""
    found, told = learner_with(8, optimizer=optimizer), learner_with(None, optimizer=optimizer, microbatch_size=8)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            one, other = found.iterate(), told.iterate()
            assert {k: v for k, v in one.metrics.items() if k.startswith(("loss", "policy", "optim"))} == \
                   {k: v for k, v in other.metrics.items() if k.startswith(("loss", "policy", "optim"))}
    assert same(everything(found), everything(told), but=["split"])
    assert loss_of(found).failures == 2, "32 and 16 samples were tried once each, and never again"
    assert len(caplog.records) == 2 and "ppo.microbatch_size=8" in caplog.text
    whole = learner_with(None, optimizer=optimizer)
    for _ in range(3):
        whole.iterate()
    assert not torch.equal(whole.updater.optimizer.parameters, found.updater.optimizer.parameters), "it was really split"


def test_where_in_the_update_memory_runs_out_does_not_matter():
    """The last minibatch of an update is the first that does not fit."""
    late, told = learner_with(10**6), learner_with(None, microbatch_size=16)
    for learner in (late, told):
        learner.iterate()
    # Until here no minibatch was split, and the other learner's were.
    late.load_state(*told.state())
    assert late.updater.split.at_once(32) == 32
    before = loss_of(late).calls
    add = late.updater.loss.add_gradient

    def at_the_last(policy: ActorCritic, batch: Batch, scale: Tensor | None) -> Sequence[Tensor]:
        terms = add(policy, batch, scale)
        if loss_of(late).calls == before + 4 and batch.flat.weight.numel() == 32:
            raise torch.OutOfMemoryError
        return terms

    late.updater.loss.add_gradient = at_the_last
    for learner in (late, told):
        learner.iterate()
    assert late.updater.split.fitting == 16
    assert torch.equal(late.updater.optimizer.parameters, told.updater.optimizer.parameters)


def test_the_split_is_saved_and_a_resumed_run_rounds_as_the_one_that_went_on():
    first = learner_with(8)
    first.iterate()
    tensors, plain = first.state()
    saved = {file: {name: x.clone() for name, x in part.items()} for file, part in tensors.items()}
    roomy = learner_with(10**6)  # more memory, as on another machine: it must split all the same
    roomy.load_state(saved, plain)
    for _ in range(2):
        first.iterate(), roomy.iterate()
    assert loss_of(roomy).failures == 0 and same(everything(first), everything(roomy))
    forgetful = learner_with(10**6)
    forgetful.load_state(saved, {**plain, "split": None})
    for _ in range(2):
        forgetful.iterate()
    assert not same(everything(first), everything(forgetful)), "without the saved split it rounds differently"


def test_an_option_that_is_set_on_resume_counts_instead_of_what_was_found():
    first = learner_with(8)
    first.iterate()
    resumed = learner_with(10**6, microbatch_size=16)
    resumed.load_state(*first.state())
    assert resumed.updater.split.at_once(32) == 16


def test_memory_that_is_too_small_for_a_single_sample_ends_the_run_and_saves_it():
    learner = learner_with(0)
    before = everything(learner)
    with pytest.raises(UserError, match=r"even where one sample is computed at once.*env\.count"):
        learner.learn()
    assert loss_of(learner).failures == 6  # 32, 16, 8, 4, 2, 1
    saved = {**before, "split": None}
    assert same(everything(learner), saved), "the iteration is saved as it began"


def test_networks_stay_compiled_when_memory_runs_out():
    """Any other error would mean that they cannot be compiled."""
    networks = Compiled(lambda: 7, "networks")

    def full() -> int:
        raise torch.OutOfMemoryError

    networks.compiled = full
    with pytest.raises(torch.OutOfMemoryError):
        networks()
    assert networks.compiled is full


def test_other_errors_of_a_loss_are_raised():
    learner = learner_with(None)

    def broken(*_: Any) -> Any:
        raise RuntimeError("shapes do not match")

    learner.updater.loss.add_gradient = broken
    with pytest.raises(RuntimeError, match="shapes"):
        learner.iterate()


@pytest.mark.parametrize(("options", "size", "length", "parts"), [
    ({}, 100, 1, 1), ({"microbatch_size": 100}, 100, 1, 1), ({"microbatch_size": 99}, 100, 1, 2),
    ({"microbatch_size": 1}, 100, 1, 100), ({"accumulate": 3}, 100, 1, 3),
    ({"accumulate": 3, "microbatch_size": 10}, 100, 1, 10),
    ({"microbatch_size": 64}, 8, 16, 2), ({"microbatch_size": 40}, 8, 16, 4), ({"microbatch_size": 3}, 8, 16, 8),
])
def test_parts(options, size, length, parts):
    assert Split(run_config(options).ppo).parts(size, length) == parts
