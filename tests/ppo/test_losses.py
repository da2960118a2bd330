"""Losses other than PPO's in the same update: imitation of given actions and distillation of a teacher, each on every path."""
from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from tests.ppo.combinations import differences
from tests.ppo.learners import learner_over, made_up_experience, run_config, trained_policy
from tests.ppo.test_identity_envs import score
from tests.roundings import FUNCTION, assert_rounded
from tests.toy_vec_envs import IdentityEnv
from wavedash.envs.obs import sensed
from wavedash.envs.vec_env import Step
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.evaluation import OutputGradients
from wavedash.ppo import pieces
from wavedash.ppo.experience import Batch
from wavedash.ppo.learner import Learner
from wavedash.ppo.loss import Loss
from wavedash.ppo.rollout import Rollout, RolloutBuffer
from wavedash.ppo.update import Updater

PPO = {"rollout_steps": 8, "epochs": 4, "minibatch_size": 128, "learning_rate": 2e-2}
SPACE = spaces.Discrete(5)


class Imitation(Loss):
    """Behaviour cloning: the negative log-probability of what a teacher would have done. The critic is not trained."""

    terms = ("loss/imitation", "policy/entropy")

    def __init__(self, teacher: Callable[[Rollout], Tensor]):
        self.teacher = teacher

    def labels(self, buffer: RolloutBuffer) -> Mapping[str, Tensor]:
        return {"action": self.teacher(buffer.samples)}

    def add_gradient(self, policy: ActorCritic, batch: Batch, scale: Tensor | None) -> tuple[Tensor, ...]:
        said = policy.evaluate(batch.obs, batch.labels["action"], batch.memory, batch.fresh)
        zero = torch.zeros_like(said.value)
        said.backward(OutputGradients(log_prob=-batch.flat.weight, entropy=zero, value=zero).scaled(scale))
        return -said.log_prob, said.entropy


class Distillation(Loss):
    """KL(teacher || policy) over all actions, by autograd."""

    terms = ("loss/distillation",)
    autograd = True

    def __init__(self, teacher: ActorCritic):
        self.teacher = teacher

    def labels(self, buffer: RolloutBuffer) -> Mapping[str, Tensor]:
        return {"log_probs": self.teacher(buffer.samples.obs)[0].log_probs}

    def add_gradient(self, policy: ActorCritic, batch: Batch, scale: Tensor | None) -> tuple[Tensor, ...]:
        target = batch.labels["log_probs"]
        with torch.enable_grad():
            said, _ = policy(batch.obs, batch.memory, batch.fresh)
            divergence = (target.exp() * (target - said.log_probs)).sum(-1).reshape(-1)
            total = (divergence * batch.flat.weight).sum()
            (total if scale is None else total * scale).backward()
        return (divergence.detach(),)


class Unpaid(IdentityEnv):
    """Its rewards do not depend on the actions, so nothing can be learned from them alone."""

    def step(self, action: Tensor) -> Step:
        step = super().step(action)
        return step._replace(reward=step.reward.roll(1))


def told(samples: Rollout) -> Tensor:
    """The action that the observation asks for."""
    return sensed(samples.obs)["obs"].argmax(-1)


def learner_with(loss: Loss | None, policy: dict[str, Any] | None = None, inactive: float = 0.2, masked: bool = False,
                 started: bool = True, **changes: Any) -> Learner:
    run = {name: changes.pop(name) for name in ("precision", "seed") if name in changes}
    return learner_over(Unpaid(SPACE, rows=32, inactive=inactive, masked=masked), run_config({**PPO, **changes}, policy, **run),
                        started, loss=loss)


PATHS: dict[str, dict[str, Any]] = {
    "plain": {},
    "accumulated, normalised": {"accumulate": 3, "normalize_obs": True, "normalize_advantage": "minibatch"},
    "several rollouts": {"buffer_rollouts": 2},
    "memory": {"policy": {"memory": {"kind": "gru", "size": 16, "sequence": 4}}},
    "masked": {"masked": True},
    "bf16": {"precision": "bf16"},
    "fp16": {"precision": "fp16"},
}


@pytest.mark.slow
@pytest.mark.parametrize(("path", "in_pieces"), [*((path, False) for path in PATHS), ("plain", True), ("memory", True)])
def test_imitation_learns_what_rewards_do_not_say(path, in_pieces, monkeypatch):
    if in_pieces:
        monkeypatch.setattr(pieces, "SMALL_MATRIX", 1)
    learner = learner_with(Imitation(told), **PATHS[path])
    reports = [learner.iterate() for _ in range(12)]
    assert (learner.updater._pieces is not None) is in_pieces
    first, last = (report.metrics["loss/imitation"] for report in (reports[0], reports[-1]))
    assert last < 0.2 < first
    if path != "memory":  # `score` plays without memory
        assert score(IdentityEnv(SPACE, rows=100, masked="masked" in PATHS[path]), learner.policy) > 0.95


def test_labels_of_other_rows_teach_nothing():
    """This is the control of the test above."""
    learner = learner_with(Imitation(lambda samples: told(samples).roll(1)))
    for _ in range(12):
        report = learner.iterate()
    assert report.metrics["loss/imitation"] > 1.0


def test_the_metrics_of_an_update_are_those_of_its_loss():
    metrics = learner_with(Imitation(told)).iterate().metrics
    assert {"loss/imitation", "policy/entropy", "policy/entropy_share", "optim/grad_norm", "optim/update_size",
            "optim/learning_rate", "loss/explained_variance", "rollout/reward"} <= metrics.keys()
    assert not {"loss/policy", "loss/value", "policy/kl", "policy/clip_fraction", "optim/clip_range"} & metrics.keys()
    assert metrics["policy/entropy_share"] == pytest.approx(metrics["policy/entropy"] / math.log(5), rel=1e-6)


def test_the_gradient_is_that_of_cross_entropy():
    """It is compared with torch's own loss over all valid samples, through autograd."""
    policy = trained_policy("discrete")
    buffer = made_up_experience(policy, 20, 5, inactive=0.3)
    labels = torch.randint(5, (100,))
    reference = copy.deepcopy(policy)
    updater = Updater(policy, run_config({"epochs": 1, "minibatch_size": 1000, "max_grad_norm": None}).ppo, seed=0,
                      loss=Imitation(lambda samples: labels))
    valid = buffer.samples.active
    logits = reference(buffer.samples.obs)[0].log_probs[valid]
    expected = torch.nn.functional.cross_entropy(logits, labels[valid])
    expected.backward()
    table = updater.update(buffer)
    roundings = 100 + 2 * 16 + 5 * FUNCTION
    assert_rounded(table["loss/imitation"][0], expected.detach(), roundings)
    for (name, p), q in zip(policy.named_parameters(), reference.parameters(), strict=True):
        wanted = torch.zeros_like(q) if q.grad is None else q.grad
        assert_rounded(p.grad, wanted, roundings, torch.ones(()), what=name)
    assert (table["applied"] == 1).all() and policy.actor["head"].logits.weight.grad.abs().max() > 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("path", "in_pieces"), [("plain", False), ("fp16", False), ("plain", True)])
def test_distillation_by_autograd_learns_the_teachers_distribution(path, in_pieces, monkeypatch):
    if in_pieces:
        monkeypatch.setattr(pieces, "SMALL_MATRIX", 1)
    torch.manual_seed(0)
    teacher = copy.deepcopy(learner_with(None).policy)
    with torch.no_grad():
        teacher.head.logits.weight.normal_()
    learner = learner_with(Distillation(teacher), **PATHS[path])
    reports = [learner.iterate() for _ in range(20)]
    assert (learner.updater._pieces is not None) is in_pieces
    assert reports[-1].metrics["loss/distillation"] < 0.02 < 0.2 < reports[0].metrics["loss/distillation"]


def test_a_run_with_another_loss_is_resumed_bit_for_bit():
    whole, first = (learner_with(Imitation(told), started=False, seed=3, normalize_obs=True) for _ in range(2))
    for learner, iterations in ((whole, 6), (first, 3)):
        learner.start()
        for _ in range(iterations):
            learner.iterate()
    second = learner_with(Imitation(told), started=False, seed=3, normalize_obs=True)
    second.load_state(*copy.deepcopy(first.state()))
    second.start()
    for _ in range(3):
        second.iterate()
    assert differences(whole, second) == set()


def test_an_early_stop_by_what_the_loss_does_not_measure_is_refused():
    with pytest.raises(UserError, match=r"ppo.target_kl=0.01 needs the metric policy/kl, which the loss Imitation does not"):
        learner_with(Imitation(told), target_kl=0.01)
