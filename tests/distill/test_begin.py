"""A student that begins as its teacher: it acts as the teacher where both see the same, and learns to see sooner."""
from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.distill.students import GRU, LSTM, SENSES, student_of, teacher_of
from wavedash.config_file import load_config
from wavedash.distill.begin import begin_as_teacher
from wavedash.envs.obs import map_obs, sensed_spaces
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.trained_policy import TrainedPolicy

ALIKE: dict[str, Any] = {"hidden": [16]}
SEEN = {"normalize_obs": True}
CASES = [("gaussian", GRU), ("discrete", LSTM), ("tanh", None), ("multi-discrete", GRU)]


def student(action: str, memory: dict[str, Any] | None, **policy: Any) -> ActorCritic:
    """A student that sees the camera and the joints."""
    return student_of(teacher_of(action, memory), action, memory, ppo=SEEN, policy={**ALIKE, **policy}).policy


def observations(steps: int = 6, rows: int = 5) -> list[dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    return [{key: torch.rand(rows, *(space.shape or ()), generator=generator).to(torch.float32)
             for key, space in sensed_spaces(SENSES).items()} for _ in range(steps)]


def acts(policy: ActorCritic, seen: list[dict[str, Tensor]], **changed: Any) -> Tensor:
    """[steps, N, ...]: its likeliest actions, with its memory, for observations in which keys are replaced."""
    player = TrainedPolicy(policy)
    return torch.stack([player.step({**obs, **{key: change(obs[key]) for key, change in changed.items()}}, deterministic=True)
                        for obs in seen])


@pytest.mark.parametrize(("action", "memory"), CASES, ids=[case[0] for case in CASES])
def test_a_student_that_sees_the_same_is_its_teacher(action: str, memory: dict[str, Any] | None) -> None:
    teacher = teacher_of(action, memory)
    twin = student(action, memory, actor_keys=["joints", "truth"])
    seen = observations()
    assert not torch.equal(acts(twin, seen), acts(teacher, seen)), "the control"
    begin_as_teacher(twin, teacher, "toy")
    assert torch.equal(acts(twin, seen), acts(teacher, seen))


@pytest.mark.parametrize(("action", "memory"), CASES, ids=[case[0] for case in CASES])
def test_what_it_alone_sees_counts_for_nothing_and_what_the_teacher_alone_sees_is_missing(
        action: str, memory: dict[str, Any] | None) -> None:
    """The reference is the teacher with its weights of what the student does not see set to 0."""
    teacher, pupil = teacher_of(action, memory), student(action, memory)
    begin_as_teacher(pupil, teacher, "toy")
    seen = observations()
    assert torch.equal(acts(pupil, seen), acts(pupil, seen, camera=lambda x: 1.0 - x)), "the camera counts for nothing"
    joints = sensed_spaces(SENSES)["joints"].shape[0]
    trunk = teacher.trunks["actor"]
    weight = trunk.body.layers[0].weight if trunk.memory is None else trunk.memory.layers[0].weight_in
    assert trunk.encoders.keys[0] == "joints" and not torch.equal(acts(pupil, seen), acts(teacher, seen))
    with torch.no_grad():
        weight[:, joints:] = 0.0
    # Sums of the same numbers and of zeros, perhaps in another order; actions are within [-1, 1] or whole numbers.
    torch.testing.assert_close(acts(pupil, seen), acts(teacher, seen), rtol=0, atol=1e-5)


def test_the_camera_learns_although_its_columns_begin_at_zero() -> None:
    teacher = teacher_of("gaussian", GRU)
    learner = student_of(teacher, "gaussian", GRU, ppo=SEEN, policy=ALIKE)
    begin_as_teacher(learner.policy, teacher, "toy")
    camera = learner.policy.trunks["actor"].encoders.of("camera")
    before = [x.clone() for x in camera.parameters()]
    for _ in range(2):
        learner.iterate()
    assert all((x != y).any() for x, y in zip(camera.parameters(), before, strict=True))


def test_how_widely_it_explores_is_its_own() -> None:
    teacher, pupil = teacher_of("gaussian", GRU), student("gaussian", GRU, initial_std=0.123)
    begin_as_teacher(pupil, teacher, "toy")
    torch.testing.assert_close(pupil.head.log_std.exp(), torch.full_like(pupil.head.log_std, 0.123))


@pytest.mark.parametrize(("policy", "memory", "said"), [
    ({"hidden": [8]}, GRU, r"policy.hidden is \[16\] there and \[8\] here"),
    ({}, LSTM, r"policy.memory is \{'kind': 'gru', 'size': 8, 'layers': 1\} there and \{'kind': 'lstm'"),
    ({"actor_keys": ["camera"]}, GRU, "no key with the same encoder in common"),
])
def test_networks_that_differ_are_refused_by_name_and_nothing_is_copied(
        policy: dict[str, Any], memory: dict[str, Any], said: str) -> None:
    pupil = student("gaussian", memory, **policy)
    before = map_obs(Tensor.clone, dict(pupil.state_dict()))
    with pytest.raises(UserError, match=said):
        begin_as_teacher(pupil, teacher_of("gaussian", GRU), "toy")
    assert isinstance(before, dict)
    assert all(torch.equal(x, before[name]) for name, x in pupil.state_dict().items())


def test_weights_of_standardised_numbers_mean_nothing_for_others() -> None:
    with pytest.raises(UserError, match=r"ppo\.normalize_obs is false there and true here"):
        begin_as_teacher(student("gaussian", GRU), teacher_of("gaussian", GRU, normalised=False), "toy")


def test_a_run_begins_with_one_policy() -> None:
    with pytest.raises(UserError, match=r"init and distill\.begin_as_teacher both say"):
        load_config("cartpole-memory", ["init=runs/x", "distill.teacher=runs/y", "distill.begin_as_teacher=true"])
