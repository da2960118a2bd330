"""A reward that is not finite or a start that is impossible is refused with the part, the car, the arena and the step."""
from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.rocket.no_host_sync import NoHostSync
from tests.rocket.test_env import Height, env_of, random_actions, simulated  # noqa: F401 (env_of is a fixture)
from tests.rocket.test_starts import SPEC, TEAMS, empty, written
from wavedash.assembly import assembled
from wavedash.config_file import load_config
from wavedash.envs.errors import EnvError
from wavedash.evaluate.episodes import play
from wavedash.evaluate.random_play import RandomPlayer
from wavedash.rocket import names
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.parts import Reward, Start
from wavedash.rocket.possible import rules
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task
from wavedash.rocket.watch import impossible

HERE = "tests.rocket.test_faults"


class Broken(Reward):
    """The reward is `value` for one car at one tick of its episode, else 0."""

    groups = 0

    def __init__(self, value: float = math.nan, arena: int = 1, seat: int = 1, tick: int = 24, group: int = 0) -> None:
        self.value, self.arena, self.seat, self.tick, self.group = value, arena, seat, tick, group

    def bind(self, state: Any) -> None:
        Broken.groups += 1
        if self.group and Broken.groups != self.group:
            self.value = 0.0

    def __call__(self, state: Any, previous: Any, events: Any) -> Tensor:
        paid = torch.zeros_like(state.cars.boost)
        if self.arena < len(paid):
            paid[self.arena, self.seat] = torch.where(state.game.tick[self.arena] == self.tick, self.value, 0.0)
        return paid


def rewards(options: str = "", extra: str = "") -> str:
    return f"env.rocket.rewards={{goal: 10, mine: {{reward: '{HERE}:Broken', weight: 2{options}}}{extra}}}"


@pytest.mark.parametrize(("preset", "options", "says"), [
    ("rocket-1v1", "", "reward 'mine' paid nan to the car in seat 1 (orange) of arena 1, in step 3 of its episode (tick 24)"),
    ("rocket-1v1", ", value: -.inf, arena: 2, seat: 0, tick: 80",
     "reward 'mine' paid -inf to the car in seat 0 (blue) of arena 2, in step 10 of its episode (tick 80)"),
    # Team spirit and zero-sum spread it over all cars of the arena; the one that it came from is named.
    ("rocket-2v2", ", seat: 3",
     "reward 'mine' paid nan to the car in seat 3 (orange) of arena 1, in step 3 of its episode (tick 24)"),
])
def test_a_reward_that_is_not_finite_is_named(env_of, preset, options, says):  # noqa: F811
    spread = ["env.rocket.team_spirit=0.5", "env.rocket.zero_sum=true"] if preset == "rocket-2v2" else []
    env = env_of(rewards(options), *spread, preset=preset)
    env.reset(0)
    for t, action in enumerate(random_actions(env, 12), start=1):
        step = env.step(action)
        assert bool(env.fault) == (t >= int(says.partition("in step ")[2].split()[0])), "it is set when it happens, and stays"
    assert env.explain_fault() == says and bool(env.fault)
    assert step.reward.isfinite().all(), "the control: later steps are sound, and what was kept is the one that was not"


def test_all_rewards_of_the_step_are_named():
    env = simulated(rewards(extra=f", second: {{reward: '{HERE}:Broken', weight: 0, value: .inf, seat: 0}}"))
    env.reset(0)
    for action in random_actions(env, 4):
        env.step(action)
    assert "reward 'mine' paid nan" in env.explain_fault()
    assert "in the same step not finite either: second" in env.explain_fault(), "with a weight of 0 as well: 0 * inf is NaN"


def test_huge_rewards_are_no_fault():
    second = f", other: {{reward: '{HERE}:Broken', weight: 2, value: 1.0e+38, seat: 0, tick: 8}}"
    env = simulated(rewards(", value: 1.0e+38, tick: 8", second))
    env.reset(0)
    env.step(random_actions(env, 1)[0])
    assert bool(env.fault), "their sum is not finite"
    assert env.explain_fault() is None and not bool(env.fault)


def test_the_check_for_faults_has_no_host_sync():
    """It can be captured in a CUDA graph."""
    env = simulated(rewards())
    env.reset(0)
    env.step(random_actions(env, 1)[0])
    watch, reward = env._shards[0].watch, torch.zeros(env.num_rows)
    with NoHostSync():
        watch.check(reward)
        watch.check(torch.full_like(reward, math.nan))
        wrong = impossible(env._shards[0].fresh)
    assert watch.seen.item() and not wrong.item()


def config(*overrides: str, groups: int = 2):
    small = ["env.count=4", f"env.groups={groups}", "ppo.rollout_steps=8", "ppo.epochs=1", "policy.hidden=[16]", "device=cpu"]
    return load_config("rocket-1v1", [*small, *overrides])


def test_training_ends_with_the_name_and_keeps_the_weights():
    """It happens in the second shard, whose arenas are numbered after those of the first."""
    Broken.groups = 0
    with assembled(config(rewards(", tick: 80, group: 3"), "ppo.normalize_obs=false", "ppo.normalize_reward=false")) as run:
        run.start()
        run.iterate()
        with pytest.raises(EnvError, match=r"reward 'mine' paid nan to the car in seat 1 \(orange\) of arena 3, in step 10 of "
                                           r"its episode \(tick 80\)\. Values must be finite.*iteration 2"):
            run.iterate()
        assert run.updater.optimizer.parameters.isfinite().all()


def test_an_observation_of_a_task_that_is_not_finite_is_named():
    own = f"env.rocket.observation={{'{HERE}:BadColumn': {{}}}}"
    says = r"observation 'obs'\[2\] of the car in seat 1 \(orange\) of arena 0 is nan before step 4 of its episode"
    with assembled(config(own, "ppo.normalize_obs=true")) as run, pytest.raises(EnvError, match=says):
        run.start()


class BadColumn(names.find("observation", "default_obs")):  # type: ignore[misc]
    """A user's own observation, which divides by a number that is 0 after three steps."""

    def build(self, state: Any, controls: Any, stepped: bool = True) -> Tensor:
        seen = super().build(state, controls, stepped)
        seen[:, 1, 2] /= torch.where(state.game.tick == 24, 0.0, 1.0)
        seen[:, 1, 2] -= torch.where(state.game.tick == 24, math.inf, 0.0)
        return seen


def test_an_evaluation_ends_with_the_name_too():
    env = simulated(rewards())
    with pytest.raises(EnvError, match="reward 'mine' paid nan to the car in seat 1"):
        play(env, RandomPlayer(env, 0), 3, 1, 0)


# --- starts ----------------------------------------------------------------------------------------------------------


class Misplaced(Start):
    """It writes `value` into one field of one arena in three."""

    def __init__(self, field: str, value: Any) -> None:
        self.field, self.value = field, value

    def write(self, state: GameState, generator: torch.Generator) -> None:
        part, name = self.field.split(".")
        field = getattr(getattr(state, part), name)
        (field if part == "ball" else field[:, 1])[1::3] = torch.tensor(self.value)


WRONG = [
    ("ball.position", "[0, 0, -200]", r"ball\.position is outside the arena, it is \[0\.0, 0\.0, -200\.0\].*z from 0 to 2044"),
    ("ball.position", "[0, 5200, 1000]", r"ball\.position is outside the arena"),  # beyond the back wall, over the goal
    ("ball.position", "[3900, 4900, 1000]", r"ball\.position is outside the arena"),  # behind a corner
    ("ball.velocity", "[.nan, 0, 0]", r"ball\.velocity is faster than 6000 uu/s, it is \[nan"),
    ("cars.position", "[0, 0, -1]", r"cars\.position of seat 1 is outside the arena, it is \[0\.0, 0\.0, -1\.0\]"),
    ("cars.rotation", "[[1, 0, 0], [0, 1, 0], [0, 0, -1]]", r"cars\.rotation of seat 1 is no rotation"),
    ("cars.boost", "101", r"cars\.boost of seat 1 must be 0 to 100, it is 101"),
    ("cars.angular_velocity", "[0, .inf, 0]", r"cars\.angular_velocity of seat 1 is not a number"),
]


@pytest.mark.parametrize(("field", "value", "says"), WRONG)
def test_a_start_that_cannot_be_in_the_game_is_refused_with_its_name(field, value, says):
    starts = f"env.rocket.starts={{kickoff: 0.2, '{HERE}:Misplaced': {{weight: 0.8, field: {field}, value: {value}}}}}"
    with pytest.raises(EnvError, match=rf"start '{HERE}:Misplaced' writes a state that cannot be in the game: {says}.*Correct"):
        simulated(starts)


def test_a_start_that_goes_wrong_later_is_refused_then():
    class Later(Start):
        written = 0

        def write(self, state: GameState, generator: torch.Generator) -> None:
            Later.written += 1
            if Later.written == 2:
                state.ball.position[:, 2] = -100.0

    base = config(groups=1)
    made = Task.configured(base.env.rocket)
    env = RocketEnv.configured(base.env, task=lambda: Task(made.observation, made.action, made.rewards, Later(), made.endings))
    env.reset(0)
    arenas = env._shards[0]
    arenas.used.fill_(arenas.depth)  # as after so many episodes
    with pytest.raises(EnvError, match=r"Later' writes a state that .*first in arena 0, in 1024 of 1024 beginnings"):
        arenas._begin(arenas.everywhere)
    env.close()


def test_on_a_gpu_a_bad_start_is_noted_before_the_rollout_and_reported_after_it():
    env = simulated()
    env.reset(0)
    arenas = env._shards[0]
    arenas.on_host = False  # as on a GPU
    env.prepare()
    assert not bool(env.fault)
    arenas.task.start = Misplaced("ball.position", [0.0, 0.0, -200.0])
    env.prepare()
    assert bool(env.fault) and "start 'tests.rocket.test_faults:Misplaced'" in env.explain_fault()
    env.close()


@pytest.mark.parametrize("name", SPEC)
@pytest.mark.parametrize(("blue", "orange"), TEAMS)
def test_every_shipped_start_obeys_the_rules(name, blue, orange):
    for rule in rules(written(name, empty(400, blue, orange))):
        assert not rule.broken.any(), rule.field


@pytest.mark.slow
def test_the_rules_hold_for_states_of_real_games():
    """The control that they are not too strict: thousands of states that RocketSim and our simulator have reached."""
    for simulator in ("warp", "rocketsim"):
        env = simulated("env.count=24", "env.rocket.starts={random: 1, shot: 1, wall: 1}", simulator=simulator)
        env.reset(1)
        for action in random_actions(env, 120):
            env.step(action)
            broken = [rule.field for rule in rules(env._shards[0].state) if rule.broken.any()]
            assert not broken
        env.close()
