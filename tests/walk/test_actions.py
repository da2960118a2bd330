"""Actions: the one that the policy has sampled reaches the motors, scaled."""
from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.walk.robots import STILL, home, made_up, make_env
from wavedash.assembly import assembled
from wavedash.config_file import load_config
from wavedash.errors import UserError
from wavedash.walk.actions import JointTargets
from wavedash.walk.env import WalkEnv
from wavedash.walk.mujoco_batch import MujocoSimulator
from wavedash.walk.names import PARTS


def test_an_action_is_an_angle_from_the_standing_pose() -> None:
    action = torch.zeros(3, 12)
    action[1] = 1.0
    action[2, 0], action[2, 4], action[2, 11] = -0.5, 0.25, 7.0
    targets = JointTargets(scale=(0.4, 0.6, 0.8)).parse(action, made_up(3))
    torch.testing.assert_close(targets[0], home()[0])
    torch.testing.assert_close(targets[1], home()[0] + torch.tensor([0.4, 0.6, 0.8] * 4))
    expected = home()[0].clone()
    expected[0] += -0.5 * 0.4
    expected[4] += 0.25 * 0.6
    expected[11] += 0.8  # clipped
    torch.testing.assert_close(targets[2], expected)
    torch.testing.assert_close(JointTargets(0.25).parse(action, made_up(3))[1], home()[0] + 0.25)


@pytest.mark.parametrize("scale", [0.0, (1.0, 2.0), (0.5, -0.1, 0.5)])
def test_a_scale_must_be_one_or_three_numbers_above_zero(scale: Any) -> None:
    with pytest.raises(UserError, match="scale is one number above 0"):
        PARTS.make("action", "joint_targets", {"scale": scale})


def test_the_action_of_a_step_is_the_target_of_its_motors() -> None:
    env = make_env(4, starts=STILL)
    env.reset(0)
    assert isinstance(env.simulator, MujocoSimulator)
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        action = 2 * torch.rand(4, 12, generator=generator) - 1
        env.step(action)
        assert torch.equal(env.simulator.target, env.task.action.parse(action, env.state).double())
        assert torch.equal(env.state.action, action)


def test_the_learner_executes_the_sampled_action_and_not_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a rollout has stored, with its log-probability, is what the motors got."""
    config = load_config("walk-flat", ["env.count=8", "ppo.rollout_steps=4", "ppo.epochs=1", "ppo.minibatch_size=32",
                                       "device=cpu", "threads=1", "policy.initial_std=0.25"])
    got: list[torch.Tensor] = []
    step = MujocoSimulator.step

    def spying(simulator: MujocoSimulator, target: torch.Tensor) -> None:
        step(simulator, target)
        got.append(simulator.target.float().clone())

    monkeypatch.setattr(MujocoSimulator, "step", spying)
    with assembled(config) as learner:
        learner.start()
        learner.iterate()
        rollout = learner.buffer.slot(learner.buffer.newest)
        assert isinstance(learner.env, WalkEnv)
        parse, state = learner.env.task.action.parse, learner.env.state
        executed = torch.stack(got[-4:])  # [T, N, 12]
        torch.testing.assert_close(executed, torch.stack([parse(action, state) for action in rollout.action]))
        deviation = (rollout.action - rollout.action.mean((0, 1))).std()
        assert float(deviation) == pytest.approx(0.25, rel=0.2), "actions vary as the policy's distribution does"
        assert isinstance(rollout.obs, dict)
        mean = learner.policy.act({key: x[0] for key, x in rollout.obs.items()}, {}, deterministic=True).action
        assert (parse(mean, state) - executed[0]).abs().mean() > 0.05, "the control: the mean is something else"
