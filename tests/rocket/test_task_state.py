"""A resumed task has its memory from the checkpoint, by the names of parts, and its settings from the configuration."""
from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.rocket.no_host_sync import NoHostSync
from tests.rocket.random_states import random_state
from tests.rocket.test_env import random_actions, simulated, trajectory
from wavedash.envs.errors import EnvError
from wavedash.errors import UserError
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.parts import Reward
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task

HERE = "tests.rocket.test_task_state"
REWARDS = "env.rocket.rewards={goal: 10, recovery: 1, speed: 0.5}"
ENDINGS = "env.rocket.endings={no_touch: {seconds: 20}, time_out: {seconds: 90}}"


class Forgetful(Reward):
    """It counts the steps of an episode in a tensor that is not a buffer."""

    def bind(self, state: GameState) -> None:
        self.steps = torch.zeros_like(state.cars.boost)

    def __call__(self, state: Any, previous: Any, events: Any) -> torch.Tensor:
        self.steps += 1
        return self.steps


def arenas(*overrides: str) -> RocketEnv:
    return simulated(REWARDS, ENDINGS, *overrides, preset="rocket-2v2")


@pytest.fixture(scope="module")
def saved() -> Iterator[tuple[RocketEnv, dict[str, torch.Tensor]]]:
    """An environment after ten steps, in the middle of all episodes, and its state."""
    env = arenas()
    env.reset(0)
    trajectory(env, random_actions(env, 10))
    yield env, {name: x.clone() for name, x in env.save_state().items()}
    env.close()


def resumed(state: dict[str, torch.Tensor], *overrides: str) -> RocketEnv:
    env = arenas(*overrides)
    env.load_state(state)
    return env


def test_no_setting_is_saved(saved):
    _, state = saved
    names = {name.removeprefix("0.task.") for name in state if name.startswith("0.task.")}
    assert names == {"action.left", "rewards.parts.recovery.turtled", "start.drawn", "endings.no_touch.since",
                     "endings.time_out.since"}


@pytest.mark.parametrize(("override", "where"), [
    ("env.rocket.rewards.goal=20", lambda task: pays(task, goal=20.0)),
    ("env.rocket.reward_mode=sparse", lambda task: pays(task, speed=0.0)),
    ("env.rocket.team_spirit=0.25", lambda task: pays(task, team_spirit=0.25)),
    ("env.rocket.zero_sum=0.5", lambda task: pays(task, zero_sum=0.5)),
    ("env.rocket.zero_sum=true", lambda task: pays(task, zero_sum=1.0)),
    ("env.rocket.endings.no_touch.seconds=5", lambda task: task.endings["no_touch"].limit.item() == 600),
    ("env.rocket.starts.kickoff=7", lambda task: task.start.below[0].tolist() == pytest.approx([7.0, 7.6])),
])
def test_a_setting_comes_from_the_configuration_and_not_from_the_checkpoint(saved, override, where):
    env, state = saved
    assert not where(env.tasks[0]), "the control: it was something else before"
    other = resumed(state, override)
    for name, x in other.save_state().items():
        assert torch.equal(x, state[name]), "everything else is as it was saved"
    assert where(other.tasks[0])
    other.close()


def pays(task: Task, goal: float = 10.0, speed: float = 0.5, team_spirit: float = 0.3, zero_sum: float = 0.0) -> bool:
    """Whether rewards with these settings, by default those of the preset, would pay as the task does where blue scores a goal.
    Its memory is left as it was."""
    state = random_state(3, 2, 2, seed=0, empty=0.0)
    state.cars.is_demoed.fill_(False)
    state.cars.up.copy_(torch.tensor([0.0, 0.0, 1.0]))  # no car lies on its roof
    state.game.goal.fill_(0)
    memory = {name: x.clone() for name, x in task.rewards.state_dict().items()}
    found = task.rewards(state, state, state.events)
    task.rewards.load_state_dict(memory)
    own = goal * (state.cars.team == 0) + speed * state.cars.velocity.norm(dim=-1) / 2300
    teams = own.view(3, 2, 2)
    shared = (1 - team_spirit) * teams + team_spirit * teams.mean(-1, keepdim=True)
    expected = shared - zero_sum * teams.mean(-1, keepdim=True).flip(1)
    return torch.allclose(found, expected.view(3, 4), atol=1e-4)


def test_beginnings_are_written_anew_where_the_starts_have_changed(saved):
    _, state = saved
    same = resumed(state)
    same.prepare()
    assert torch.equal(same.save_state()["0.fresh"], state["0.fresh"]), "the control: exactly those that were saved"
    changed = resumed(state, "env.rocket.starts={kickoff: 0.4, turtle: 0.6}")
    assert torch.equal(changed.save_state()["0.fresh"], state["0.fresh"])
    changed.prepare()
    fresh = changed._shards[0].fresh
    drawn = changed.tasks[0].start.drawn
    assert 0.5 < (drawn == 1).float().mean() < 0.7
    assert torch.equal((fresh.cars.up[..., 2] < 0).all(-1), drawn == 1), "turtles, as the new configuration has it"
    changed.close()
    same.close()


def test_weights_of_starts_that_change_during_a_run_count_for_the_next_rollout(saved):
    _, state = saved
    env = resumed(state)
    env.tasks[0].start.set_weights({"kickoff": 0.0})
    env.prepare()
    assert (env.tasks[0].start.drawn == 1).all()
    env.close()


def test_parts_come_and_go_and_those_that_stay_remember(saved, caplog):
    env, state = saved
    caplog.set_level(logging.INFO)
    other = resumed(state, "env.rocket.endings={time_out: {seconds: 90}, ball_on_ground: {}, goal: {}}",
                    "env.rocket.rewards={wavedash: 1, recovery: 2}")
    now = {name: x for name, x in other.save_state().items() if name.startswith("0.task.")}
    for name in ("rewards.parts.recovery.turtled", "endings.time_out.since", "action.left"):
        assert torch.equal(now[f"0.task.{name}"], state[f"0.task.{name}"]), "it keeps its memory"
    assert "0.task.endings.no_touch.since" not in now
    velocity = torch.cat([env.state_of(arena).cars.velocity for arena in range(3)])
    assert torch.equal(now["0.task.rewards.parts.wavedash.velocity"], velocity), "its memory begins with the current state"
    assert "new, with a memory that begins now: rewards.wavedash, endings.ball_on_ground" in caplog.text
    assert "gone, with what was remembered: endings.no_touch" in caplog.text
    trajectory(other, random_actions(other, 3))
    other.close()


def test_nothing_is_logged_if_the_parts_are_the_same(saved, caplog):
    _, state = saved
    caplog.set_level(logging.INFO)
    resumed(state, "env.rocket.rewards.goal=20").close()
    assert "other parts" not in caplog.text


def test_other_cars_begin_anew(saved):
    _, state = saved
    env = arenas("env.rocket.hitbox=dominus")
    with pytest.raises(EnvError, match=r"cars\.hitbox"):
        env.load_state(state)
    env.close()


def test_arenas_of_an_earlier_version_are_told_apart(saved):
    _, state = saved
    env = arenas()
    with pytest.raises(EnvError, match="earlier version"):
        env.load_state({**state, "0.part.3": torch.zeros(3)})
    env.close()


def test_a_part_with_undeclared_state_is_refused_before_anything_is_started():
    with pytest.raises(EnvError, match=r"reward 'mine' changes its tensor 'steps', .*Forgetful.*register_buffer\('steps'"):
        simulated(f"env.rocket.rewards={{mine: {{reward: '{HERE}:Forgetful', weight: 1}}}}")


def test_settings_change_without_a_host_sync_and_as_if_they_had_been_configured():
    settings = ("env.rocket.team_spirit=0.3", "env.rocket.zero_sum=0.6", "env.rocket.endings.no_touch.seconds=0.5",
                "env.rocket.rewards.velocity_ball_to_goal=2.5", "env.rocket.reward_mode=hybrid", "env.rocket.dense_scale=0.3")
    made, changed = simulated(*settings, preset="rocket-2v2"), simulated(preset="rocket-2v2")
    task = changed.tasks[0]
    with NoHostSync():
        task.rewards.set(team_spirit=0.3, zero_sum=0.6, mode="hybrid", dense_scale=0.3)
        task.rewards.set_weights({"velocity_ball_to_goal": 2.5})
        task.endings["no_touch"].set(seconds=0.5)
        task.start.set_weights(dict.fromkeys(task.start.names, 1.0))
        task.start.set_weights(dict(made.tasks[0].start.shares))
    made.reset(1)
    changed.reset(1)
    actions = random_actions(made, 20)
    for a, b in zip(trajectory(made, actions), trajectory(changed, actions), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(UserError, match="from 0"):
        task.rewards.set(team_spirit=2.0)
    made.close()
    changed.close()
