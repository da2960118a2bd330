"""Settings of a walking task that change while a run runs, and phases. tests/runs/test_live.py compares whole runs."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.walk.robots import make_env
from wavedash.config import EnvConfig
from wavedash.envs.kinds import kind_of
from wavedash.errors import UserError
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.training import train
from wavedash.walk.env import WalkEnv

TASK: dict[str, Any] = {
    "rewards": {"alive": 1.0, "torque": 0.0, "far": {"reward": "joint_limits", "weight": 2.0}},
    "starts": {"stand": {"weight": 1, "turn": 0.0}}, "endings": {"fallen": {}, "off_tile": None, "time_out": {"seconds": 1.0}},
}


def config(**changed: Any) -> EnvConfig:
    return EnvConfig(walk={**TASK, **changed}, count=4)


def change(env: WalkEnv, **changed: Any) -> None:
    wanted = config(**changed)
    kind_of(wanted).change(env, wanted)


def test_weights_settings_and_switches_may_change() -> None:
    keys = {".".join(key) for key in kind_of(config()).live_keys(config())}
    assert keys == {
        "walk.reward_floor", "walk.rewards.alive", "walk.rewards.alive.weight", "walk.rewards.torque",
        "walk.rewards.torque.weight", "walk.rewards.far.weight", "walk.starts.stand.weight", "walk.endings.fallen",
        "walk.endings.fallen.tilt", "walk.endings.off_tile", "walk.endings.time_out", "walk.endings.time_out.seconds"}


def test_a_change_counts_from_the_next_step_on_in_the_same_tensors() -> None:
    """CUDA graphs go on reading the tensors that they were captured with."""
    env = make_env(4, **TASK)
    env.reset(0)
    read = {name: x.data_ptr() for name, x in env.task.named_buffers()}
    still = torch.zeros(4, 12)
    torch.testing.assert_close(env.step(still).reward, torch.full((4,), 0.02))
    change(env, rewards={**TASK["rewards"], "alive": 3.0})
    torch.testing.assert_close(env.step(still).reward, torch.full((4,), 0.06))
    change(env, rewards={**TASK["rewards"], "alive": -3.0}, reward_floor=-1.0)
    torch.testing.assert_close(env.step(still).reward, torch.full((4,), -0.02))
    change(env, rewards={**TASK["rewards"], "alive": -3.0})
    torch.testing.assert_close(env.step(still).reward, torch.full((4,), -0.06))
    change(env, endings={**TASK["endings"], "time_out": {"seconds": 0.1}})
    assert env.step(still).truncated.all()
    change(env, endings={**TASK["endings"], "time_out": None})
    assert not any(env.step(still).truncated.any() for _ in range(60))
    change(env, endings={**TASK["endings"], "fallen": {"tilt": 0.0}})
    assert env.step(still).terminated.all(), "nobody stands exactly upright"
    assert {name: x.data_ptr() for name, x in env.task.named_buffers()} == read


@pytest.mark.parametrize(("changed", "message"), [
    ({"rewards": {"alive": 1.0}}, "the rewards of the task differ in far, torque"),
    ({"rewards": {**TASK["rewards"], "alive": "much"}}, "alive"),
    ({"endings": {**TASK["endings"], "off_tile": {"margin": 1.0}}}, "off_tile.*margin.*stop the run"),
    ({"starts": {"stand": {"weight": -1}}}, "weight of 0 or more"),
])
def test_what_cannot_change_is_refused(changed: dict[str, Any], message: str) -> None:
    env = make_env(4, **TASK)
    env.reset(0)
    with pytest.raises((UserError, ValueError), match=message):
        change(env, **changed)
    torch.testing.assert_close(env.step(torch.zeros(4, 12)).reward, torch.full((4,), 0.02))


def test_a_task_is_united_with_the_parts_of_others_switched_off() -> None:
    one = config()
    other = config(rewards={"bounce": 2, "alive": 5.0}, endings={"fallen": {"tilt": 30}, "time_out": {"seconds": 9}})
    task = kind_of(one).united(one, [one, other]).walk
    assert task is not None
    assert task.rewards == {**TASK["rewards"], "bounce": 0.0} and task.endings == TASK["endings"]
    back = kind_of(one).united(other, [one, other]).walk
    assert back is not None
    assert back.rewards == {"alive": 5.0, "torque": 0.0, "far": {"reward": "joint_limits", "weight": 0.0}, "bounce": 2}
    assert back.endings == {"fallen": {"tilt": 30}, "off_tile": None, "time_out": {"seconds": 9}}
    assert list(task.rewards) == list(back.rewards), "in the same order"


class Weights(Listener):
    """Keeps the weights of rewards after each iteration."""

    def __init__(self) -> None:
        self.seen: list[dict[str, float]] = []

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        self.seen.append(dict(learner.env.tasks[0].rewards.weights))


def test_phases_change_a_walking_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    phases = ("phases=[{name: stand, until: {steps: 64}, set: {env.walk.rewards: {alive: 1}}}, "
              "{name: walk, set: {env.walk.rewards: {alive: 0.5, track_velocity: 1}, env.walk.reward_floor: 0}}]")
    weights = Weights()
    assert train("walk-flat", phases, "total_steps=192", "env.count=4", "ppo.rollout_steps=8", "ppo.epochs=1",
                 "ppo.minibatch_size=16", "policy.hidden=[8]", "device=cpu", "threads=1", "report.console=off",
                 "report.tensorboard=false", listeners=[weights]) == 0
    first, last = weights.seen[0], weights.seen[-1]
    assert {name for name, weight in first.items() if weight} == {"alive"} and first["track_velocity"] == 0.0
    assert {name: weight for name, weight in last.items() if weight} == {"alive": 0.5, "track_velocity": 1.0}
