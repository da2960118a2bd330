"""What a teacher says of each step, against the same policy run over whole sequences on its own.

Public code asks the teacher without its memory, or keeps the memory over ends of episodes, or normalises by the student's
statistics: each of these mistakes gives other labels, which is shown beside the right ones.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from tests.distill.students import GRU, LSTM, ROWS, Recorded, student_of, teacher_of
from tests.roundings import FUNCTION, gamma
from wavedash.distill.teacher import LABEL, Teacher, check_fits
from wavedash.envs.kinds import Spaces
from wavedash.envs.obs import action_mask
from wavedash.envs.vec_env import EnvError
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.distributions import Distribution
from wavedash.ppo.learner import Learner

TEACHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "discrete, gru": ("discrete", {"memory": GRU}),
    "discrete, gru, masked": ("discrete", {"memory": GRU, "masked": True}),
    "multi-discrete, lstm": ("multi-discrete", {"memory": LSTM}),
    "gaussian, lstm": ("gaussian", {"memory": LSTM}),
    "tanh, gru": ("tanh", {"memory": GRU}),
    "beta, gru": ("beta", {"memory": GRU}),
    "gsde, gru": ("gsde", {"memory": GRU}),
    "gaussian, no memory": ("gaussian", {}),
    "discrete, with a floor, no memory": ("discrete", {"action_floor": 0.2}),
}
CLOSE = 16 * gamma(16 * (3 * 16 + 4 * FUNCTION))
"""Labels are below 1 and come from 16 steps of sums of up to 16 numbers, in another order than those of the reference."""


def rehearsed(name: str, iterations: int = 2) -> tuple[Learner, ActorCritic, Tensor]:
    """A student after some iterations, its teacher, and all labels that were stored, [steps, N, ...]."""
    action, options = TEACHERS[name]
    teacher = teacher_of(action, **options)
    learner = student_of(teacher, action, GRU, masked=options.get("masked", False))
    labels = []
    for _ in range(iterations):
        learner.iterate()
        labels.append(learner.rollout.labels[LABEL].clone())
    return learner, teacher, torch.cat(labels)


def said(policy: ActorCritic, distribution: Distribution) -> Tensor:
    """The label by other words than the package's: probabilities, or the action that the environment would receive."""
    if hasattr(distribution, "log_probs"):
        return distribution.log_probs.exp()
    if hasattr(distribution, "choices"):
        return distribution.choices.log_probs.exp()
    assert isinstance(policy.action_space, spaces.Box)
    low, high = (torch.as_tensor(bound) for bound in (policy.action_space.low, policy.action_space.high))
    return 2 * (policy.head.env_action(distribution.mode()) - low) / (high - low) - 1


@torch.no_grad()
def reference(learner: Learner, teacher: ActorCritic, *, memory: bool = True, cleared: bool = True,
              normalised: bool = True) -> Tensor:
    """Runs the teacher over all that the environment has given, as one sequence for each row, or with a known mistake."""
    env = learner.env
    assert isinstance(env, Recorded)
    assert isinstance(teacher.observation_space, spaces.Dict)
    keys = teacher.observation_space.spaces
    obs = {key: torch.stack([seen[key] for seen in env.seen[:-1]]) for key in keys}
    steps = len(env.over)
    fresh = torch.zeros(steps, ROWS, dtype=torch.bool)
    fresh[1:] = torch.stack(env.over)[:-1]
    if not cleared:
        fresh[:] = False
    if not memory:
        fresh[:] = True
    if teacher.sequence_length is None:
        fresh = None
    seen = teacher.normalize(obs) if normalised else obs
    return said(teacher, teacher(seen, teacher.initial_memory(ROWS), fresh)[0])


@pytest.mark.parametrize("name", TEACHERS)
def test_labels_are_those_of_the_teacher_with_its_own_memory_and_statistics(name):
    learner, teacher, labels = rehearsed(name)
    counted = labels.flatten(2).abs().sum(-1) > 0  # labels of inactive steps are blank
    assert 0.6 < counted.float().mean() < 1.0
    expected = reference(learner, teacher)
    assert (labels - expected)[counted].abs().max() < CLOSE
    mistakes = {"normalised": False, **({"memory": False, "cleared": False} if teacher.sequence_length else {})}
    for mistake, value in mistakes.items():
        wrong = reference(learner, teacher, **{mistake: value})
        assert (labels - wrong)[counted].abs().max() > 0.05, mistake


def test_the_students_statistics_are_not_the_teachers():
    """With `ppo.normalize_obs` the student standardises `joints` by other numbers than the teacher does."""
    teacher = teacher_of("gaussian", GRU)
    learner = student_of(teacher, "gaussian", GRU, ppo={"normalize_obs": True})
    learner.iterate()
    labels, env = learner.rollout.labels[LABEL], learner.env
    assert isinstance(env, Recorded)
    counted = labels.abs().sum(-1) > 0
    expected = reference(learner, teacher)[-len(labels):]
    assert (labels - expected)[counted].abs().max() < CLOSE
    obs = {key: torch.stack([seen[key] for seen in env.seen[:-1]]) for key in ("joints", "truth")}
    fresh = torch.zeros(len(env.over), ROWS, dtype=torch.bool)
    fresh[1:] = torch.stack(env.over)[:-1]
    with torch.no_grad():
        by_student = teacher(learner.policy.normalize(obs), teacher.initial_memory(ROWS), fresh)[0]
    assert (labels - said(teacher, by_student)[-len(labels):])[counted].abs().max() > 0.05


def test_a_rollout_goes_on_when_a_row_falls():
    """A known mistake is to stop it at the first fall. Here every row has all of its steps, and labels after its falls."""
    learner, _, labels = rehearsed("gaussian, lstm", iterations=1)
    rollout = learner.rollout
    assert not torch.equal(rollout.done.any(1), rollout.done.all(1)), "rows end at different times"
    first_fall = int(rollout.done.any(1).nonzero()[0])
    after = rollout.active[first_fall + 1:]
    assert first_fall < 4 and after.float().mean() > 0.6
    assert (labels[first_fall + 1:][after].abs().sum(-1) > 0).all()


def test_rollouts_hold_what_the_student_needs_and_the_label_not_what_the_teacher_sees():
    teacher = teacher_of("discrete", GRU)
    for critic, keys in ((False, {"camera", "joints"}), (True, {"camera", "joints", "truth"})):
        learner = student_of(teacher, "discrete", GRU, distill={"critic": critic})
        learner.iterate()
        assert set(learner.rollout.obs) == keys
        assert set(learner.updater.experience.all.obs) == keys
    masked = student_of(teacher, "discrete", masked=True)
    assert set(masked.rollout.obs) == {"camera", "joints", "action_mask"}


@pytest.mark.parametrize("its_own", [True, False])
def test_a_teacher_asks_nothing_that_is_forbidden(its_own):
    """Also one that was trained without masks: the student cannot do what is forbidden to it."""
    teacher = teacher_of("discrete", GRU, masked=its_own)
    learner = student_of(teacher, "discrete", GRU, masked=True)
    metrics = [learner.iterate().metrics for _ in range(3)]
    labels, allowed = learner.rollout.labels[LABEL], action_mask(learner.rollout.obs)
    assert (labels[allowed == 0] == 0).all() and (allowed == 0).any()
    assert all(0.0 <= each["distill/loss"] < 20.0 for each in metrics)


def test_an_action_outside_of_the_bounds_is_labelled_as_the_environment_receives_it():
    teacher = teacher_of("gaussian")
    with torch.no_grad():
        teacher.head.mean.bias.fill_(3.0)
    label, _ = Teacher(teacher).label({"joints": torch.zeros(4, 3), "truth": torch.zeros(4, 2)}, {})
    assert (label[LABEL] == 1.0).all()


def test_without_bounds_nothing_is_clipped():
    space = spaces.Box(np.array([-np.inf, 0.0, -1.0], np.float32), np.array([np.inf, np.inf, 1.0], np.float32))
    policy = ActorCritic(spaces.Box(-1.0, 1.0, (2,)), space, teacher_of("gaussian").config)
    with torch.no_grad():
        policy.head.mean.weight.zero_()
        policy.head.mean.bias.copy_(torch.tensor([-7.0, -7.0, -7.0]))
    label, _ = Teacher(policy).label(torch.zeros(1, 2), {})
    assert label[LABEL].tolist() == [[-7.0, 0.0, -1.0]]


def test_the_student_acts_not_the_teacher():
    teacher = teacher_of("gaussian", GRU)
    mean = student_of(teacher, "gaussian", GRU, distill={"act": "mean"})
    mean.iterate()
    rollout = mean.rollout
    with torch.no_grad():
        first = student_of(teacher, "gaussian", GRU).policy  # the same initial weights
        seen = {key: x[0] for key, x in rollout.obs.items()}
        distribution = first.forward_actor({key: x.unsqueeze(0) for key, x in seen.items()}, first.initial_memory(ROWS),
                                           torch.zeros(1, ROWS, dtype=torch.bool))
    active = rollout.active[0]
    torch.testing.assert_close(rollout.action[0][active], distribution.mode()[0][active])
    sampled = student_of(teacher, "gaussian", GRU)
    sampled.iterate()
    assert (sampled.rollout.action[0][active] - distribution.mode()[0][active]).abs().max() > 0.3, "the default samples"


def test_what_only_the_teacher_sees_and_is_not_finite_ends_the_run_with_a_message():
    learner = student_of(teacher_of("gaussian", GRU), "gaussian", GRU)
    learner.iterate()
    env: Any = learner.env
    real = env._obs

    def broken(draws: Tensor) -> Any:
        obs = real(draws)
        obs["truth"][2] = torch.inf
        return obs

    env._obs = broken
    with pytest.raises(EnvError, match=r"the label 'teacher' of row 2 is nan before step .* that only the teacher sees"):
        learner.iterate()


def test_a_teacher_that_does_not_fit_is_refused_with_what_to_do():
    teacher = teacher_of("discrete")
    env = Recorded(spaces.Discrete(5), rows=2, senses=True)
    here = Spaces(env.observation_space, env.action_space)
    check_fits(teacher, here, "T")
    with pytest.raises(UserError, match=r"distill.teacher=T has other actions .* Discrete\(5\) and not Discrete\(4\)"):
        check_fits(teacher, Spaces(env.observation_space, spaces.Discrete(4)), "T")
    seen: dict[str, Any] = dict(env.parts)
    without = {key: part for key, part in seen.items() if key != "truth"}
    with pytest.raises(UserError, match=r"distill.teacher=T sees truth \[2\] of float32, which .* has camera, joints"):
        check_fits(teacher, Spaces(spaces.Dict(without), env.action_space), "T")
    with pytest.raises(UserError, match=r"sees truth as \[2\] of float32, but .* \[3\] of float32"):
        check_fits(teacher, Spaces(spaces.Dict({**seen, "truth": seen["joints"]}), env.action_space), "T")
    with pytest.raises(UserError, match="sees action_mask, which the observation of this environment does not have"):
        check_fits(teacher_of("discrete", masked=True), here, "T")
    plain = ActorCritic(spaces.Box(-1, 1, (3,)), spaces.Discrete(5), teacher.config)
    check_fits(plain, Spaces(spaces.Box(-1, 1, (3,)), spaces.Discrete(5)), "T")
    with pytest.raises(UserError, match=r"sees obs \[3\] of float32, .* no dictionary has the one key obs"):
        check_fits(plain, here, "T")


def test_a_teacher_need_not_have_what_only_its_critic_saw():
    teacher = teacher_of("discrete", actor_keys=["joints"])
    env = Recorded(spaces.Discrete(5), rows=2, senses=True)
    without = spaces.Dict({key: part for key, part in env.parts.items() if key != "truth"})
    check_fits(teacher, Spaces(without, env.action_space), "T")
    assert Teacher(teacher).keys == ["joints"]
