"""The loss of distillation and its gradient, against torch's own losses over valid steps; and what it trains and what not."""
from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.distill.students import GRU, LSTM, SMALL, student_of, teacher_of
from tests.roundings import FUNCTION, assert_rounded
from wavedash.distill.teacher import LABEL
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo import pieces
from wavedash.ppo.learner import Learner
from wavedash.ppo.ppo_loss import PPOLoss
from wavedash.ppo.update import Updater

WHOLE = {"epochs": 1, "minibatch_size": 1000, "max_grad_norm": None}
"""One gradient step over everything"""
STUDENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "discrete": ("discrete", {}),
    "discrete, masked, gru": ("discrete", {"memory": GRU, "masked": True}),
    "discrete, with a floor": ("discrete", {"policy": {"action_floor": 0.1}}),
    "multi-discrete, lstm": ("multi-discrete", {"memory": LSTM}),
    "multi-discrete, masked": ("multi-discrete", {"masked": True}),
    "gaussian, gru": ("gaussian", {"memory": GRU}),
    "gaussian-state": ("gaussian-state", {}),
    "tanh": ("tanh", {}),
    "beta": ("beta", {}),
    "confined": ("gaussian", {"policy": {"distribution": "confined"}}),
    "gsde": ("gsde", {}),
}
TEACHER_OF = {"tanh": "gaussian", "beta": "gaussian", "gaussian-state": "tanh", "gsde": "beta"}
"""Teachers with heads of another kind than the student's"""


def collected(name: str, **changes: Any) -> Learner:
    """A student that has collected one rollout and learned nothing from it."""
    action, options = STUDENTS[name]
    teacher = teacher_of(TEACHER_OF.get(action, action), GRU)
    options = {**options, **changes}
    learner = student_of(teacher, action, **{**options, "ppo": {**WHOLE, **options.get("ppo", {})}})
    with torch.no_grad():
        torch.manual_seed(1)
        for p in learner.policy.parameters():
            if p.requires_grad:
                p.add_(0.3 * torch.randn_like(p))
    rollout = learner.buffer.next_slot()
    learner.complete(rollout, learner.collector.collect(rollout))
    return learner


def sequences_of(learner: Learner) -> tuple[dict[str, Tensor], dict[str, Tensor] | None, Tensor | None]:
    """Observations, memory and beginnings as sequences of the memory's length, [L, B, ...]; steps where there is none."""
    rollout, length = learner.rollout, learner.policy.sequence_length
    assert isinstance(rollout.obs, dict)
    obs = {**rollout.obs, "truth": torch.zeros(*rollout.active.shape, 2)}  # the critic of the reference sees something
    if length is None:
        return {key: x.flatten(0, 1) for key, x in obs.items()}, None, None

    def cut(x: Tensor) -> Tensor:
        return torch.cat(x.split(length), 1)

    memory = {name: x.flatten(0, 1) for name, x in rollout.memory.items()}
    return {key: cut(x) for key, x in obs.items()}, memory, cut(rollout.fresh)


def expected_loss(learner: Learner, policy: ActorCritic) -> Tensor:
    """The loss by torch's own functions, over valid steps."""
    rollout, length = learner.rollout, policy.sequence_length
    distribution, _ = policy(*sequences_of(learner))

    def like_it(x: Tensor) -> Tensor:
        return x.flatten(0, 1) if length is None else torch.cat(x.split(length), 1)

    label, active = like_it(rollout.labels[LABEL]), like_it(rollout.active)
    if hasattr(distribution, "log_probs"):
        entropy = torch.special.entr(label[active]).sum(-1).mean()
        return F.cross_entropy(distribution.log_probs[active], label[active]) - entropy
    if hasattr(distribution, "choices"):
        log_probs, total = distribution.choices.log_probs[active], torch.zeros(())
        for k in range(label.shape[-2]):  # one choice after the other
            total = total + F.cross_entropy(log_probs[:, k], label[active][:, k])
        return total - torch.special.entr(label[active]).sum((-1, -2)).mean()
    if hasattr(distribution, "normal"):
        said = distribution.normal.mean.tanh()
    elif hasattr(distribution, "alpha"):
        said = 2 * (distribution.alpha - 1) / (distribution.alpha + distribution.beta - 2) - 1
    else:
        said = distribution.mean
    return F.mse_loss(said[active], label[active])


@pytest.mark.parametrize("name", STUDENTS)
def test_the_gradient_is_that_of_torchs_own_loss(name):
    learner = collected(name)
    reference = copy.deepcopy(learner.policy)
    expected = expected_loss(learner, reference)
    assert expected.item() > 0.01
    expected.backward()
    table = learner.updater.update(learner.buffer)
    roundings = 48 + 4 * 16 + 16 * FUNCTION
    assert_rounded(table["distill/loss"][0], expected.detach(), roundings, torch.full((), 4.0))
    assert table["applied"].item() == 1 and table["optim/grad_norm"].item() > 1e-3
    for (part, p), q in zip(learner.policy.named_parameters(), reference.named_parameters(), strict=True):
        if p.requires_grad:
            wanted = torch.zeros_like(p) if q[1].grad is None else q[1].grad
            assert_rounded(p.grad, wanted, roundings, 4 * torch.ones(()), what=part)


def test_a_deviation_and_the_critic_are_not_trained():
    learner = collected("gaussian, gru")
    learner.updater.update(learner.buffer)
    unchanged = {name for name, p in learner.policy.named_parameters() if not p.grad.any()}
    assert unchanged == {name for name, _ in learner.policy.named_parameters()
                         if name.startswith("critic.") or name == "actor.head.log_std"}
    assert not learner.rollout.value.any() and not learner.rollout.advantage.any(), "no critic was computed"


def test_labels_and_observations_of_inactive_steps_do_not_count():
    gradients = []
    for garbage in (False, True):
        learner = collected("gaussian, gru", memory={})
        rollout = learner.rollout
        assert not rollout.active.all()
        if garbage:
            rollout.labels[LABEL][~rollout.active] = 1e6
            rollout.obs["joints"][~rollout.active] = -50.0
        learner.updater.update(learner.buffer)
        gradients.append(learner.updater.optimizer.gradient.clone())
    assert torch.equal(*gradients) and gradients[0].any()
    learner = collected("gaussian, gru", memory={})
    learner.rollout.labels[LABEL][learner.rollout.active] += 0.5
    learner.updater.update(learner.buffer)
    assert not torch.equal(gradients[0], learner.updater.optimizer.gradient), "the control: those of active steps do"


@pytest.mark.parametrize("value_clip", [None, 0.05])
def test_the_critic_learns_as_by_ppo_and_the_actor_as_without_it(value_clip):
    ppo = {"value_clip": value_clip, "value_coef": 0.7}
    both = collected("gaussian, gru", distill={"critic": True}, ppo=ppo)
    assert both.rollout.value.any() and both.rollout.advantage.any()
    with torch.no_grad():
        both.rollout.value.add_(0.1 * torch.randn_like(both.rollout.value))  # an older critic's, so that clipping counts
    policies = copy.deepcopy(both.policy), copy.deepcopy(both.policy)
    config = both.config.ppo
    by_ppo = Updater(policies[0], config, seed=0, loss=PPOLoss(config))
    by_ppo.update(both.buffer)
    actor_only = collected("gaussian, gru").updater.loss
    alone = Updater(policies[1], config, seed=0, loss=actor_only)
    alone.update(both.buffer)
    table = both.updater.update(both.buffer)
    assert "loss/value" in table.columns
    size = 48 + 4 * 16 + 16 * FUNCTION
    for name, p in both.policy.named_parameters():
        source = policies[0] if name.startswith("critic.") else policies[1]
        assert_rounded(p.grad, source.get_parameter(name).grad, size, 4 * torch.ones(()), what=name)
        assert p.grad.any() or name == "actor.head.log_std"


@pytest.mark.parametrize("changes", [
    {"ppo": {**SMALL, "accumulate": 3}}, {"ppo": {**SMALL, "buffer_rollouts": 2}}, {"precision": "bf16"},
    {"precision": "fp16"}, {"ppo": {**SMALL, "optimizer": "muon"}}, {"ppo": {**SMALL, "normalize_obs": True}},
], ids=str)
@pytest.mark.parametrize("action", ["multi-discrete", "tanh"])
def test_the_machinery_is_that_of_ppo(action, changes):
    """It learns in every precision, from several rollouts, by parts of minibatches, with another optimiser."""
    learner = student_of(teacher_of(action, GRU), action, GRU, policy={"initial_std": 0.1}, **changes)
    reports = [learner.iterate().metrics for _ in range(15)]
    assert reports[-1]["distill/loss"] < 0.8 * reports[0]["distill/loss"]
    assert all(report["optim/skipped"] == 0 for report in reports)


@pytest.mark.parametrize("critic", [False, True])
def test_in_pieces_by_threads_it_is_the_same(critic, monkeypatch):
    weights = []
    for in_pieces in (False, True):
        monkeypatch.setattr(pieces, "SMALL_MATRIX", 1 if in_pieces else 10**18)
        learner = student_of(teacher_of("discrete", GRU), "discrete", GRU, distill={"critic": critic})
        for _ in range(3):
            learner.iterate()
        assert (learner.updater._pieces is not None) is in_pieces
        weights.append(learner.updater.optimizer.parameters.clone())
    torch.testing.assert_close(*weights, rtol=1e-3, atol=1e-4)


def test_a_minibatch_that_does_not_fit_is_computed_in_parts():
    learner = student_of(teacher_of("discrete", GRU), "discrete", GRU)
    loss, add = learner.updater.loss, learner.updater.loss.add_gradient

    def short_of_memory(policy: Any, batch: Any, scale: Any) -> Any:
        if batch.flat.weight.numel() > 8:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return add(policy, batch, scale)

    loss.add_gradient = short_of_memory
    told = student_of(teacher_of("discrete", GRU), "discrete", GRU, ppo={"microbatch_size": 6})
    metrics = [student.iterate().metrics["distill/loss"] for student in (learner, told)]
    assert learner.updater.split.fitting == 6 and metrics[0] == metrics[1]


def test_metrics_say_how_far_the_student_is_from_its_teacher():
    discrete = student_of(teacher_of("discrete"), "discrete", ppo=WHOLE)
    first = discrete.iterate().metrics
    rollout = discrete.rollout
    before = student_of(teacher_of("discrete"), "discrete").policy  # the same initial weights
    with torch.no_grad():
        same = before.forward_actor(rollout.obs).mode() == rollout.labels[LABEL].argmax(-1)
    assert first["distill/agreement"] == pytest.approx(same[rollout.active].float().mean().item(), abs=1e-6)
    assert {"distill/loss", "optim/grad_norm"} <= first.keys()
    assert not {"loss/policy", "policy/kl", "loss/explained_variance", "distill/error", "loss/value"} & first.keys()

    continuous = student_of(teacher_of("gaussian"), "gaussian", ppo=WHOLE)
    first = continuous.iterate().metrics
    rollout, active = continuous.rollout, continuous.rollout.active
    before = student_of(teacher_of("gaussian"), "gaussian").policy
    with torch.no_grad():
        off = (before.forward_actor(rollout.obs).mode() - rollout.labels[LABEL])[active]
    share = (off.square().mean() / rollout.labels[LABEL][active].square().mean()).sqrt().item()
    assert first["distill/error"] == pytest.approx(share, rel=1e-4) and "distill/square" not in first
    assert 0.9 < share < 1.1, "a fresh student answers nearly 0"


def test_a_student_that_is_its_teacher_has_nothing_to_learn():
    learner = student_of(teacher_of("discrete", normalised=False, keys=("camera", "joints")), "discrete",
                         policy={"hidden": [16], "encoders": {}}, ppo=WHOLE)
    loss: Any = learner.updater.loss
    teacher = loss.labeller.policy
    learner.policy.actor.load_state_dict(teacher.actor.state_dict())
    metrics = learner.iterate().metrics
    assert abs(metrics["distill/loss"]) < 1e-6 and metrics["distill/agreement"] == pytest.approx(1.0, abs=1e-5)
