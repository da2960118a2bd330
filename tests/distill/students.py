"""Shared by the tests of distillation: teachers with made-up weights, and students over an environment for both.

The environment gives three keys: `camera` and `joints`, which the student sees, `joints` and `truth`, which the teacher sees.
"""
from __future__ import annotations

from typing import Any

import gymnasium
import torch
from gymnasium import spaces
from torch import Tensor

from tests.ppo.combinations import ACTIONS
from tests.ppo.learners import learner_over, run_config
from tests.toy_vec_envs import ScrambledEnv
from wavedash.config import DistillConfig, PolicyConfig
from wavedash.distill.loss import DistillLoss
from wavedash.distill.teacher import Teacher
from wavedash.envs.obs import map_obs
from wavedash.envs.vec_env import Obs, Step
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.normalizer import RunningMoments
from wavedash.ppo.learner import Learner

SENSES = ScrambledEnv(spaces.Discrete(2), 1, senses=True).observation_space
GRU, LSTM = {"kind": "gru", "size": 8, "sequence": 4}, {"kind": "lstm", "size": 6, "layers": 2, "sequence": 4}
STUDENT = {"actor_keys": ["camera", "joints"], "critic_keys": ["joints", "truth"],
           "encoders": {"camera": {"channels": [4], "features": 6}}}
SMALL = {"rollout_steps": 8, "epochs": 2, "minibatch_size": 24, "learning_rate": 3e-3}
ROWS = 6


def teacher_of(action: str, memory: dict[str, Any] | None = None, normalised: bool = True, masked: bool = False,
               keys: tuple[str, ...] = ("joints", "truth"), **policy: Any) -> ActorCritic:
    """A policy whose weights and statistics are as after some training, so that memory and statistics matter."""
    torch.manual_seed(5)
    space, options = ACTIONS[action]
    seen: dict[str, gymnasium.Space[Any]] = {key: SENSES[key] for key in keys}
    if masked:
        seen["action_mask"] = ScrambledEnv(space, 1, masked=True).parts["action_mask"]
    config = PolicyConfig(hidden=[16], memory=memory or {}, **{**options, **policy})
    made = ActorCritic(spaces.Dict(seen), space, config, 10.0 if normalised else None)
    with torch.no_grad():
        for p in made.parameters():
            if p.requires_grad:
                p.add_(0.5 * torch.randn_like(p))
        for moments in made.modules():
            if isinstance(moments, RunningMoments):
                moments.shift.normal_()
                moments.scale.uniform_(1.0, 3.0)
    return made


class Recorded(ScrambledEnv):
    """Keeps what it has given: observations before each step, and where memory is over after it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.seen: list[Obs] = []
        self.over: list[Tensor] = []
        self.acted: list[Tensor] = []

    def reset(self, seed: int | None = None) -> Obs:
        obs = super().reset(seed)
        self.seen = [map_obs(Tensor.clone, obs)]
        return obs

    def step(self, action: Tensor) -> Step:
        step = super().step(action)
        self.acted.append(action.clone())
        self.seen.append(map_obs(Tensor.clone, step.obs))
        self.over.append(~step.active | step.terminated | step.truncated)
        return step


def student_of(teacher: ActorCritic, action: str, memory: dict[str, Any] | None = None, *, masked: bool = False,
               started: bool = True, ppo: dict[str, Any] | None = None, policy: dict[str, Any] | None = None,
               distill: dict[str, Any] | None = None, **run: Any) -> Learner:
    space, options = ACTIONS[action]
    config = run_config({**SMALL, **(ppo or {})}, {**STUDENT, **options, "memory": memory or {}, **(policy or {})},
                        distill={"teacher": "toy", **(distill or {})}, **run)
    assert isinstance(config.distill, DistillConfig)
    env = Recorded(space, rows=ROWS, masked=masked, senses=True)
    return learner_over(env, config, started, loss=DistillLoss(Teacher(teacher), config.distill, config.ppo))
