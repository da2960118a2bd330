"""What a student takes of memory is what is estimated: its own keys and the label, not the keys of the teacher."""
from __future__ import annotations

import pytest
import torch

from tests.distill.students import GRU, student_of, teacher_of
from wavedash.envs.kinds import Spaces
from wavedash.memory.estimate import memory_of
from wavedash.memory.shapes import Shapes


@pytest.mark.parametrize("critic", [False, True])
@pytest.mark.parametrize("action", ["multi-discrete", "gaussian"])
def test_rollouts_take_what_is_estimated(action, critic):
    learner = student_of(teacher_of(action, GRU), action, GRU, distill={"critic": critic}, ppo={"buffer_rollouts": 2})
    env = learner.env
    shapes = Shapes.of(Spaces(env.observation_space, env.action_space, env.num_rows), learner.policy)
    config = learner.config.model_copy(update={"env": learner.config.env.model_copy(update={"count": 1})})
    terms = memory_of(config, shapes, torch.device("cpu"))
    assert terms["rollouts"] == sum(x.numel() * x.element_size() for x in learner.buffer.all.tensors().values())
    assert terms["teacher"] > 0 and shapes.by_actor < shapes.by_both == shapes.observation
