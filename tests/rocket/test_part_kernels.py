"""The kernels of rewards and endings pay, decide and remember, bit for bit, what their classes do."""
from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.rocket.random_states import random_state
from tests.rocket.test_env import random_actions, simulated
from tests.rocket.test_measures_kernels import DEVICES
from tests.rocket.test_measures_reference import games
from wavedash.rocket import names
from wavedash.rocket.endings import Recovered
from wavedash.rocket.rewards import Recovery
from wavedash.rocket.sim import parts
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task

REWARDS: dict[str, dict[str, Any]] = {"recovery": {}, "flip_reset": {"reach": 190.5, "min_height": 100.0},
                                      "aerial_distance": {"min_height": 200.1}, "touch_toward_goal": {}}
ENDINGS: dict[str, dict[str, Any]] = {"recovered": {}}
LANES = ("env.rocket.lanes={all: {share: 0.5, starts: {turtle: 1, air_dribble: 1, flip_reset: 1}, endings: {recovered: {}, "
         "time_out: {seconds: 1}}, rewards: {recovery: 1, aerial_distance: 1, flip_reset: 1, touch_toward_goal: 1}}}")


def compared(kind: str, given: dict[str, dict[str, Any]], states: list[GameState], begins: torch.Tensor,
             device: str) -> set[str]:
    """Both see the same states. Returns the names of parts that paid or happened."""
    plain, fast = ({name: names.make(kind, name, options) for name, options in given.items()} for _ in range(2))
    state, previous = states[0].to(device).clone(), states[0].to(device).clone()
    everywhere = torch.ones(state.arenas, dtype=torch.bool, device=device)
    for part in (*plain.values(), *fast.values()):
        part.bind(state)
        part.begin(state, everywhere)
    kernels = (parts.RewardKernels if kind == "reward" else parts.EndingKernels)(fast, state)
    happened = set()
    for step in range(1, len(states)):
        previous.copy_(states[step - 1].to(device))
        state.copy_(states[step].to(device))
        with state.cars.keeping():
            found = kernels(state, previous, state.events)
            assert set(found) == set(given)
            for name, part in plain.items():
                expected = part(state, previous, state.events)
                assert torch.equal(found[name], expected.to(found[name].dtype)), (name, step)
                assert all(torch.equal(fast[name].state_dict()[key], x) for key, x in part.state_dict().items()), (name, step)
                happened |= {name} if bool(expected.any()) else set()
        for part in (*plain.values(), *fast.values()):
            part.begin(state, begins[step].to(device))
    return happened


@pytest.mark.parametrize("device", DEVICES)
def test_kernels_pay_decide_and_remember_what_the_classes_do(device: str) -> None:
    paid, ended = set(), set()
    for game in ("turtle", "air_dribble", "flip_reset"):
        states, begins = games(game, seed=4)
        paid |= compared("reward", REWARDS, states, begins, device)
        ended |= compared("ending", ENDINGS, states, begins, device)
    assert paid == set(REWARDS) and ended == set(ENDINGS)


def test_kernels_agree_in_teams_with_empty_seats() -> None:
    states = [random_state(40, 3, 2, seed) for seed in range(40)]
    for step, state in enumerate(states):
        state.cars.team.copy_(states[0].cars.team)
        state.cars.present.copy_(states[0].cars.present)
        state.events.touches.copy_((torch.rand(40, 5, generator=torch.Generator().manual_seed(step)) < 0.3).int())
    begins = torch.rand(40, 40, generator=torch.Generator().manual_seed(0)) < 0.05
    assert {"aerial_distance", "touch_toward_goal"} <= compared("reward", REWARDS, states, begins, "cpu")
    compared("ending", ENDINGS, states, begins, "cpu")


def test_a_class_of_ones_own_another_power_and_another_state_have_no_kernel() -> None:
    class Own(Recovery):
        """It may pay for something else."""

    class OwnEnding(Recovered):
        """It may end something else."""

    state = random_state(4, 1, 1, 0)
    rewards = {"own": Own(), "linear": names.make("reward", "touch_toward_goal", {"power": 1.0})}
    endings = {"own": OwnEnding()}
    for part in (*rewards.values(), *endings.values()):
        part.bind(state)
    assert not parts.RewardKernels(rewards, state).mine and not parts.EndingKernels(endings, state).mine
    recovery = Recovery()
    recovery.bind(state)
    other = state.clone()
    assert not parts.RewardKernels({"recovery": recovery}, state)(other, other.clone(), other.events)


def test_games_without_kernels_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Warp is not installed, the classes are called."""
    said = []
    for kernels in (True, False):
        if not kernels:
            monkeypatch.setattr(Task, "_use_kernels", lambda task, state: None)
        env = simulated(LANES, "env.count=8")
        env.reset(5)
        steps = [env.step(action) for action in random_actions(env, 60)]
        said.append([x for step in steps for x in (step.reward, step.terminated, step.truncated)])
        assert any(bool((step.metrics["reward/recovery"] > 0).any()) for step in steps)
        env.close()
    assert all(torch.equal(x, y) for x, y in zip(*said, strict=True))
