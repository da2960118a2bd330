"""Measures of a task are metrics: counted per attempt, absent without one, saved with the arenas, and no part of the game."""
from __future__ import annotations

from typing import Any

import pytest
import torch
from gymnasium import spaces

from tests.ppo.learners import learner_over, run_config
from tests.rocket.test_env import random_actions, simulated
from tests.toy_vec_envs import TapeEnv
from wavedash.envs.errors import EnvError
from wavedash.envs.vec_env import Step
from wavedash.rocket import names
from wavedash.rocket.measures import Turtle
from wavedash.rocket.parts import Measure
from wavedash.rocket.state import GameState

ALL = "env.rocket.measures=[{turtle: {window: 0.5}}, wall, {dribble: {least: 0, seconds: 0.2}}, {air_dribble: {least: 1}}, " \
      "flip_reset, jump_challenge]"
STARTS = "env.rocket.starts={turtle: 1, dribble: 1, air_dribble: 1, flip_reset: 1}"
SHORT = "env.rocket.endings={time_out: {seconds: 1.5}}"
LONG = "env.rocket.endings={time_out: {seconds: 300}}"
T, N = 4, 3


class Attempts(TapeEnv):
    """Row 2 is inactive. Attempts are decided in the first rollout only: one success and two failures of active rows."""

    OUTCOME = torch.full((2 * T, N), torch.nan)
    OUTCOME[0, 0], OUTCOME[2, 0], OUTCOME[2, 1], OUTCOME[1, 2] = 1.0, 0.0, 0.0, 1.0

    def __init__(self) -> None:
        active = torch.ones(2 * T, N, dtype=torch.bool)
        active[:, 2] = False
        never = torch.zeros(2 * T, N, dtype=torch.bool)
        super().__init__(torch.randn(2 * T, N, 3), torch.ones(2 * T, N), never, never, active, spaces.Discrete(2))

    def step(self, action: torch.Tensor) -> Step:
        outcome = self.OUTCOME[self.played % (2 * T)]
        return super().step(action)._replace(metrics={"attempt/trick": outcome, "speed": torch.arange(N).float()})


def test_a_rate_counts_attempts_and_is_absent_without_one() -> None:
    learner = learner_over(Attempts(), run_config({"rollout_steps": T, "minibatch_size": T * N, "epochs": 1}))
    first, second = (learner.iterate().metrics for _ in range(2))
    assert first["env/attempt/trick"] == 1 / 3, "neither steps without an attempt nor inactive rows count"
    assert "env/attempt/trick" not in second
    assert first["env/speed"] == second["env/speed"] == 0.5, "other metrics are means over all steps of active rows"


def steps(env: Any, actions: torch.Tensor) -> list[dict[str, torch.Tensor]]:
    return [{name: x.clone() for name, x in env.step(action).metrics.items()} for action in actions]


def same(a: list[dict[str, torch.Tensor]], b: list[dict[str, torch.Tensor]]) -> bool:
    return all(x.keys() == y.keys() and all(torch.equal(x[k].nan_to_num(-9), y[k].nan_to_num(-9)) for k in x)
               for x, y in zip(a, b, strict=True))


def test_metrics_of_a_step_say_which_attempts_it_decided() -> None:
    env = simulated("env.rocket.measures=[{turtle: {window: 1.5}}]", "env.rocket.starts={turtle: 1}", LONG, "env.count=16")
    env.reset(3)
    state, everywhere = env._shards[0].state, torch.ones(16, dtype=torch.bool)
    again = Turtle(window=1.5)
    again.bind(state)
    again.begin(state, everywhere)
    decided = succeeded = 0
    for action in random_actions(env, 60):
        previous = state.clone()
        metrics = env.step(action).metrics
        outcome = again(state, previous, state.events)
        over, success = outcome.over.flatten(), outcome.success.flatten()
        assert torch.equal(metrics["attempt/turtle"].nan_to_num(-1), torch.where(over, success.float(), -1.0))
        assert torch.equal(metrics["per_minute/turtle_attempts"], 900.0 * over), "a step is 1/900 of a minute"
        assert outcome.ticks is not None
        expected = torch.where(success, outcome.ticks.flatten().float(), -1.0)
        assert torch.equal(metrics["attempt/turtle_ticks"].nan_to_num(-1), expected)
        decided, succeeded = decided + int(over.sum()), succeeded + int(success.sum())
    assert 0 < succeeded < decided
    env.close()


@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
def test_measures_are_saved_with_the_arenas_and_change_nothing_in_them(simulator: str) -> None:
    made = [simulated(STARTS, SHORT, *measures, "env.count=8", simulator=simulator) for measures in ((ALL,), (ALL,), ())]
    env, resumed, without = made
    actions = random_actions(env, 40)
    for each in (env, without):
        each.reset(0)
    early, plain = steps(env, actions[:17]), steps(without, actions)
    saved = {name: x.clone() for name, x in env.save_state().items()}
    late = steps(env, actions[17:])
    resumed.reset(1)
    resumed.load_state(saved)
    assert same(steps(resumed, actions[17:]), late)
    assert same([{name: metrics[name] for name in plain[0]} for metrics in early + late], plain), "the games are the same"
    seen = {name for metrics in early + late for name, x in metrics.items() if "attempt/" in name and not x.isnan().all()}
    assert {"attempt/turtle", "attempt/dribble", "attempt/air_dribble"} <= seen
    assert any(name.startswith("0.task.measures.parts.turtle.") for name in saved)
    assert not any(".measures." in name for name in without.save_state())
    without.load_state(saved)  # a run goes on with other measures
    env.load_state({name: x for name, x in saved.items() if ".measures." not in name})
    for each in made:
        each.close()


def test_measures_are_on_the_screen_and_only_where_a_task_has_them() -> None:
    plain, measured = simulated(), simulated("env.rocket.measures=[turtle, flip_reset]")
    titles = [headline.title for headline in plain.headlines]
    assert titles == ["per car and minute", "share of each reward"]
    shown = next(headline for headline in measured.headlines if headline.title not in titles)
    assert shown.metrics == {"attempt/turtle": "turtle", "attempt/turtle_ticks": "turtle ticks",
                             "attempt/flip_reset": "flip reset"}
    assert shown.measured({"env/attempt/turtle": 0.25}, "env/") == {"attempt/turtle": 0.25}, "what was not tried is not shown"
    plain.close()
    measured.close()


class NoOutcome(Measure):
    def __call__(self, state: Any, previous: Any, events: Any) -> Any:
        return state.cars.present


class WithoutTicks(Turtle):
    def __call__(self, state: Any, previous: Any, events: Any) -> Any:
        return super().__call__(state, previous, events)._replace(ticks=None)


class OfArenas(Turtle):
    timed = False

    def __call__(self, state: GameState, previous: Any, events: Any) -> Any:
        over = torch.zeros(state.arenas, dtype=torch.bool)
        return super().__call__(state, previous, events)._replace(over=over, success=over, ticks=None)


@pytest.mark.parametrize(("name", "words"), [
    ("NoOutcome", r"measure 'no_outcome' raised TypeError: it returned Tensor, not a wavedash.rocket.parts.Outcome"),
    ("WithoutTicks", r"its outcome must have `ticks` if it is timed"),
    ("OfArenas", r"measure 'of_arenas': __call__\(\) returned \[2\] for 2 arenas, not a tensor \[2, 2\]"),
])
def test_a_mistake_in_a_measure_is_named(name: str, words: str) -> None:
    with pytest.raises(EnvError, match=words):
        simulated(f"env.rocket.measures=['tests.rocket.test_measures_metrics:{name}']")


def test_every_measure_has_the_name_of_the_start_that_makes_its_attempts() -> None:
    assert set(names.shipped("measure")) <= set(names.shipped("start"))


def test_all_measures_run_in_one_step_without_a_host_sync() -> None:
    from tests.rocket.no_host_sync import NoHostSync

    env = simulated(ALL, LONG, "env.count=4")
    env.reset(0)
    task, state = env.tasks[0], env._shards[0].state
    previous = state.clone()
    task.measures.may_read = False  # as on a GPU
    with NoHostSync():
        metrics = task.measures(state, previous, state.events, 8)
    assert len(metrics) == 13 and all(x.shape == (8,) for x in metrics.values())
    env.close()
