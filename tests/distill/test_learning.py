"""A student without velocities learns to balance a pole from a teacher with velocities; without memory it cannot."""
from __future__ import annotations

from typing import Any

import pytest
import torch
from gymnasium import spaces

from tests.ppo.learners import learner_over
from wavedash.config import PolicyConfig
from wavedash.config_file import load_config
from wavedash.distill.loss import DistillLoss
from wavedash.distill.teacher import Teacher
from wavedash.envs.make import make_env
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.learner import Learner
from wavedash.trained_policy import TrainedPolicy

STUDENT = ("env.factory=wavedash.envs.puzzles:cartpole_with_positions", "policy.actor_keys=[positions]",
           "policy.critic_keys=[positions]", "distill.teacher=by hand", "env.count=16", "ppo.epochs=4", "seed=1")


def balancing() -> ActorCritic:
    """Pushes to where the pole falls, and a little to the middle: position, speed, angle and its speed count so much."""
    box = spaces.Box(-5.0, 5.0, (4,))
    policy = ActorCritic(box, spaces.Discrete(2), PolicyConfig(hidden=[]))
    with torch.no_grad():
        weights = torch.tensor([0.1, 0.3, 2.0, 1.0]) * 5
        policy.head.logits.weight.copy_(torch.stack([-weights, weights]))
    return policy


def taught(*overrides: str) -> Learner:
    config = load_config("cartpole-memory", [*STUDENT, *overrides])
    assert config.distill is not None
    loss = DistillLoss(Teacher(balancing()), config.distill, config.ppo)
    return learner_over(make_env(config.env), config, loss=loss)


@torch.no_grad()
def mean_length(policy: Any, key: str | None, episodes: int = 20) -> float:
    """The mean length of the first episode in so many environments."""
    config = load_config("cartpole-memory", [*STUDENT, f"env.count={episodes}"])
    env = make_env(config.env)
    obs, player = env.reset(123), TrainedPolicy(policy)
    length, running = torch.zeros(episodes), torch.ones(episodes, dtype=torch.bool)
    while running.any():
        step = env.step(player.step(obs if key is None else obs[key]))
        length += running
        over = step.terminated | step.truncated
        running &= ~over
        player.reset(over)
        obs = step.obs
    env.close()
    return float(length.mean())


def test_the_teacher_balances():
    assert mean_length(balancing(), "obs") > 480


@pytest.mark.slow
def test_a_student_that_sees_less_learns_what_its_teacher_does():
    student = taught()
    before = mean_length(student.policy, None)
    while student.steps < 40_000:
        metrics = student.iterate().metrics
    student.env.close()
    blind = taught("policy.memory.kind=none")
    while blind.steps < 40_000:
        blind_metrics = blind.iterate().metrics
    blind.env.close()
    scores = mean_length(student.policy, None), mean_length(blind.policy, None)
    assert before < 60
    assert scores[0] > 400 and scores[1] < 150, f"with memory {scores[0]}, without {scores[1]}"
    assert metrics["distill/loss"] < blind_metrics["distill/loss"]
