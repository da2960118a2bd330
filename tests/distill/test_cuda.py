"""On a GPU the teacher is asked inside the CUDA graph of the collection, and a stopped run goes on exactly."""
from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from tests.distill.students import GRU, SMALL, STUDENT, teacher_of
from tests.ppo.combinations import ACTIONS, differences
from tests.ppo.learners import learner_over, run_config
from tests.ppo.test_cuda import CAPTURED
from tests.toy_vec_envs import ScrambledEnv
from wavedash.distill.loss import DistillLoss
from wavedash.distill.teacher import LABEL, Teacher
from wavedash.ppo.learner import Learner

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def student(action: str, graphs: bool, started: bool = True, **run: Any) -> Learner:
    space, options = ACTIONS[action]
    config = run_config(SMALL, {**STUDENT, **options, "memory": GRU, "initial_std": 0.1}, graphs=graphs,
                        distill={"teacher": "toy"}, **run)
    assert config.distill is not None
    env = ScrambledEnv(space, rows=32, senses=True, device="cuda")
    loss = DistillLoss(Teacher(teacher_of(action, GRU).to("cuda")), config.distill, config.ppo)
    return learner_over(env, config, started, loss=loss)


@pytest.mark.parametrize("action", ["discrete", "multi-discrete", "tanh"])
def test_a_teacher_in_a_graph_says_what_it_says_without(action):
    plain, captured = (student(action, graphs) for graphs in (False, True))
    for _ in range(2 * CAPTURED):
        a, b = (learner.iterate().metrics for learner in (plain, captured))
        assert a == pytest.approx(b, rel=1e-2, abs=1e-3)
    assert all(graph.graph is not None for graph in captured._graphs.values()) and captured._graphs
    before = captured.rollout.labels[LABEL].clone()
    captured.iterate()
    assert not torch.equal(before, captured.rollout.labels[LABEL])


def test_a_captured_student_is_resumed_bit_for_bit():
    torch.backends.cudnn.deterministic = True
    whole, first = (student("gaussian", True, seed=3) for _ in range(2))
    for _ in range(CAPTURED + 1):
        first.iterate()
        whole.iterate()
    second = student("gaussian", True, started=False, seed=3)
    second.load_state(*copy.deepcopy(first.state()))
    second.start()
    for _ in range(2):
        whole.iterate()
        second.iterate()
    assert differences(whole, second) == set()
