"""RocketEnv: a task put together from its parts, in arenas of both simulators."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from wavedash.config_file import load_config
from wavedash.envs.errors import EnvError
from wavedash.envs.make import make_env
from wavedash.errors import UserError
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.parts import Ending, Reward

SIMULATORS = ["warp", "rocketsim"]
Make = Callable[..., RocketEnv]


class AfterSteps(Ending):
    """An episode ends after `steps` + the number of the arena, so that arenas end at different times."""

    def __init__(self, steps: int = 3, truncates: bool = True) -> None:
        self.steps, self.truncates = steps, truncates

    def bind(self, state: Any) -> None:
        self.limit = self.steps + torch.arange(state.arenas)
        self.register_buffer("taken", torch.zeros(state.arenas))

    def begin(self, state: Any, arenas: torch.Tensor) -> None:
        self.taken.masked_fill_(arenas, 0)

    def __call__(self, state: Any, previous: Any, events: Any) -> torch.Tensor:
        self.taken += 1
        return self.taken >= self.limit


class Height(Reward):
    """A user's own reward: the height of the car."""

    def __call__(self, state: Any, previous: Any, events: Any) -> torch.Tensor:
        return state.cars.position[..., 2] / 1000


def simulated(*overrides: str, simulator: str = "warp", preset: str = "rocket-1v1") -> RocketEnv:
    if simulator == "rocketsim":
        pytest.importorskip("RocketSim")
    env = make_env(load_config(preset, ["env.count=3", "env.groups=1", f"env.rocket.simulator={simulator}", *overrides]).env)
    assert isinstance(env, RocketEnv)
    return env


@pytest.fixture(params=SIMULATORS)
def env_of(request) -> Iterator[Make]:
    """Makes environments on one of the simulators, and closes them at the end."""
    made: list[RocketEnv] = []

    def make(*overrides: str, **options: str) -> RocketEnv:
        made.append(simulated(*overrides, simulator=request.param, **options))
        return made[-1]

    yield make
    for env in made:
        env.close()


def random_actions(env: RocketEnv, steps: int) -> torch.Tensor:
    return torch.randint(0, 90, (steps, env.num_rows), generator=torch.Generator().manual_seed(0))


def clocks(env: RocketEnv) -> torch.Tensor:
    return torch.cat([env.state_of(arena).game.tick for arena in range(3)])


def ends_after(steps: int, truncates: bool = True) -> str:
    return f"env.rocket.endings={{'tests.rocket.test_env:AfterSteps': {{steps: {steps}, truncates: {str(truncates).lower()}}}}}"


@pytest.mark.parametrize(("preset", "rows", "simulator"), [
    ("rocket-touch", 3, "warp"), ("rocket-1v1", 6, "warp"), ("rocket-2v2", 12, "warp"),
    ("rocket-touch", 3, "rocketsim"), ("rocket-1v1", 6, "rocketsim"), ("rocket-3v3", 18, "rocketsim"),
])
def test_every_preset_steps(preset, rows, simulator):
    env = simulated(preset=preset, simulator=simulator)
    obs = env.reset(0)
    assert env.num_rows == rows and env.observation_space["obs"].shape == obs["obs"].shape[1:]
    for action in random_actions(env, 40):
        step = env.step(action)
        assert all(torch.isfinite(x).all() for x in (step.obs["obs"], step.reward, step.final_obs["obs"]))
        assert (step.obs["action_mask"].sum(-1) > 0).all() and step.active.all()
    shares = sum(x for name, x in step.metrics.items() if name.startswith("reward/"))
    if preset in ("rocket-touch", "rocket-1v1"):  # without team spirit what is paid is what was earned
        torch.testing.assert_close(shares, step.reward)
    env.close()


@pytest.mark.parametrize("truncates", [True, False])
def test_an_episode_that_ends_keeps_its_last_observation_and_begins_anew_alone(truncates, env_of):
    env = env_of(ends_after(3, truncates))
    env.reset(0)
    episodes = 0
    for t, action in enumerate(random_actions(env, 12), start=1):
        before = clocks(env)
        step = env.step(action)
        ended = torch.tensor([t % n == 0 for n in (3, 4, 5)]).repeat_interleave(2)
        assert torch.equal(step.truncated if truncates else step.terminated, ended)
        assert not (step.terminated if truncates else step.truncated).any()
        assert torch.equal(clocks(env), torch.where(ended[::2], 0, before + 8))
        same = (step.final_obs["obs"] == step.obs["obs"]).all(-1)
        assert torch.equal(same, ~ended), "only those that ended have another last observation"
        episodes += int(ended.sum())
    assert episodes == 2 * (4 + 3 + 2)


def test_a_terminal_ending_takes_precedence_over_a_truncation(env_of):
    both = ("env.rocket.endings={'tests.rocket.test_env:AfterSteps': {steps: 1, truncates: false}, time_out: {seconds: 0.05}}")
    env = env_of(both)
    env.reset(0)
    step = env.step(random_actions(env, 1)[0])
    assert step.terminated[:2].all() and not step.truncated[:2].any(), "in arena 0 both endings are due"
    assert not step.terminated[2:].any() and step.truncated[2:].all(), "the others were only truncated"


def test_frames_of_other_arenas_stay_when_one_begins(env_of):
    stacked = "env.rocket.observation={advanced_obs_plus: {team_size: 1, frames: 2}}"
    env = env_of(stacked, ends_after(3))
    plain = env_of(ends_after(3), "env.rocket.observation={advanced_obs_plus: {team_size: 1}}")
    last = plain.reset(0)["obs"].clone()
    seen = env.reset(0)["obs"]
    size = last.shape[-1]
    assert torch.equal(seen[:, :size], last) and torch.equal(seen[:, size:], last), "at the start all frames are the first"
    for action in random_actions(env, 10):
        step, reference = env.step(action), plain.step(action)
        ended = reference.truncated.unsqueeze(-1)
        now, then = reference.obs["obs"], torch.where(ended, reference.obs["obs"], last)
        assert torch.equal(step.obs["obs"], torch.cat([now, then], -1))
        assert torch.equal(step.final_obs["obs"], torch.cat([reference.final_obs["obs"], last], -1))
        last = now.clone()


def test_a_users_own_part_is_named_by_its_import_path(env_of):
    env = env_of("env.rocket.rewards={'tests.rocket.test_env:Height': 2.0}")
    env.reset(0)
    step = env.step(torch.zeros(env.num_rows, dtype=torch.int64))
    height = torch.cat([env.state_of(arena).cars.position[..., 2] for arena in range(3)]).flatten()
    torch.testing.assert_close(step.reward, 2 * height / 1000)
    assert next(iter(step.metrics)) == "reward/height"


@pytest.mark.parametrize(("override", "words"), [
    ("env.rocket.rewards={gaol: 1}", "did you mean 'goal'"),
    ("env.rocket.starts={kickof: 1}", "did you mean 'kickoff'"),
    ("env.rocket.endings={no_touch: {second: 3}}", "did you mean 'seconds'"),
    ("env.rocket.observation=advanced", "advanced_obs_plus"),
    ("env.rocket.action={lookup_table: {}, continuous: {}}", "one name"),
])
def test_a_mistake_in_a_task_is_named(override, words):
    with pytest.raises(UserError, match=words):
        simulated(override)


def trajectory(env: RocketEnv, actions: torch.Tensor) -> list[torch.Tensor]:
    kept = []
    for action in actions:
        step = env.step(action)
        kept += [step.obs["obs"].clone(), step.reward.clone(), step.truncated.clone()]
    return kept


@pytest.mark.slow
def test_the_same_seed_gives_the_same_games_in_this_process_and_in_workers():
    local, pool = (simulated("env.groups=1", f"env.workers={workers}", simulator="rocketsim") for workers in (0, 2))
    for env in (local, pool):
        env.reset(5)
    actions = random_actions(local, 30)
    assert all(torch.equal(a, b) for a, b in zip(trajectory(local, actions), trajectory(pool, actions), strict=True))
    local.close()
    pool.close()


@pytest.mark.slow
@pytest.mark.parametrize(("simulator", "workers"), [("rocketsim", 2), ("warp", 0)])
def test_shards_are_stepped_one_by_one(simulator, workers):
    env = simulated("env.count=4", "env.groups=2", f"env.workers={workers}", simulator=simulator)
    env.reset(0)
    assert env.groups == (slice(0, 4), slice(4, 8))
    actions = random_actions(env, 2)
    env.send(1, actions[0, 4:])
    with pytest.raises(EnvError, match="still stepping"):
        env.send(1, actions[0, 4:])
    env.send(0, actions[0, :4])
    received = dict(env.recv() for _ in range(2))
    assert set(received) == {0, 1} and all(len(step.reward) == 4 for step in received.values())
    with pytest.raises(EnvError, match="without send"):
        env.recv()
    whole = env.step(actions[1])
    assert whole.reward.shape == (8,) and whole.obs["obs"].shape[0] == 8
    env.close()


def test_a_saved_environment_goes_on_as_if_nothing_had_happened(env_of):
    settings = ("env.groups=1", ends_after(7), "env.rocket.observation={advanced_obs_plus: {team_size: 1, frames: 2}}")
    env = env_of(*settings)
    env.reset(3)
    actions = random_actions(env, 40)
    trajectory(env, actions[:18])
    saved = {name: x.clone() for name, x in env.save_state().items()}
    expected = trajectory(env, actions[18:])
    other = env_of(*settings)
    other.load_state(saved)
    got = trajectory(other, actions[18:])
    for a, b in zip(got, expected, strict=True):
        assert torch.equal(a, b)


def test_the_state_of_another_task_is_refused(env_of):
    env, other = env_of(), env_of("env.count=2")
    env.reset(0)
    other.reset(0)
    with pytest.raises(EnvError, match=r"env.count"):
        other.load_state(env.save_state())
