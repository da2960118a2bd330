"""Team sizes side by side: every size plays as it would play alone, and all of them are rows of one batch.

The reference of a shard is an environment with this size alone, begun from the same seed.
"""
from __future__ import annotations

import itertools
import random

import pytest
import torch

from wavedash.config import EnvConfig, RocketConfig, TeamSize
from wavedash.config_file import ConfigError, load_config
from wavedash.envs.errors import EnvError
from wavedash.envs.make import make_env
from wavedash.errors import UserError
from wavedash.preflight import check_run
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.kind import RocketKind
from wavedash.rocket.team_sizes import divided, shard_plans
from wavedash.seeding import stream_seed

SIZES = "{2v2: 0.5, 1v1: 0.25, 3v3: 0.25}"
PLACES = "env.rocket.observation={advanced_obs_plus: {team_size: 3}}"
SHORT = "env.rocket.endings={time_out: {seconds: 0.5}}"


def config(*overrides: str, sizes: str | None = SIZES, preset: str = "rocket-1v1") -> EnvConfig:
    asked = [] if sizes is None else [f"env.rocket.sizes={sizes}"]
    return load_config(preset, ["env.count=8", "rating=null", PLACES, SHORT, *asked, *overrides]).env


def environment(*overrides: str, sizes: str | None = SIZES) -> RocketEnv:
    env = make_env(config(*overrides, sizes=sizes))
    assert isinstance(env, RocketEnv)
    return env


# --- the configuration -----------------------------------------------------------------------------------------------


def test_sizes_are_in_the_order_of_their_cars_whatever_the_order_in_the_file():
    weights = {"1v1": 1, "3v2": 2, "2v3": 0, "1v0": 5}
    written = [RocketConfig(sizes=dict(order)) for order in itertools.permutations(weights.items())]
    assert {tuple(one.team_sizes) for one in written} == {(TeamSize(1, 0, 5 / 8), TeamSize(1, 1, 1 / 8), TeamSize(3, 2, 2 / 8))}
    assert written[0].largest == TeamSize(3, 2, 0.25) and written[0].largest.larger == 3
    assert RocketConfig(blue=2, orange=1).team_sizes == [TeamSize(2, 1)]
    one = written[0].of_size(TeamSize(1, 1))
    assert one.sizes is None and one.team_sizes == [TeamSize(1, 1)]


@pytest.mark.parametrize(("overrides", "words"), [
    (["env.rocket.sizes={1on1: 1}"], "'1on1' is no team size: write 1v1"),
    (["env.rocket.sizes={0v0: 1}"], "'0v0' is no team size"),
    (["env.rocket.sizes={5v5: 1}"], "up to four cars"),
    (["env.rocket.sizes={1v1: -1}"], "sizes.1v1: expected greater than or equal to 0"),
    (["env.rocket.sizes={1v1: 0}"], "at least one team size needs a weight above 0"),
    (["env.rocket.sizes={}"], "at least one team size needs a weight above 0"),
    (["env.rocket.sizes={1v1: 1, 2v2: 1}", "env.count=1"], "env.count=1 is too few .* 1v1, 2v2.* set env.count=2 or more"),
    (["env.rocket.sizes={1v1: 1, 2v2: 1}", "env.rocket.simulator=rocketsim", "env.workers=1", "env.groups=1"],
     "env.workers=1 is too few .*set env.workers=2 or more, or 0"),
    (["env.rocket.sizes={1v1: 1, 2v1: 1}", "opponents={}"], "env.rocket.sizes has 2v1: leave it out of the sizes"),
    (["env.rocket.sizes={1v1: 1, 2v1: 1}", "rating={}"], "env.rocket.sizes has 2v1: set rating.size to one such as 1v1"),
    (["rating.size=2v1"], "rating.size"),
    (["opponents.share=0.5", "opponents.most=0.2"], "resume RUN opponents.most=0.5 opponents.share=0.5"),
])
def test_what_cannot_be_is_refused(overrides, words):
    with pytest.raises(ConfigError, match=words):
        load_config("rocket-1v1", ["env.count=8", *overrides])


def test_opponents_without_room_are_refused_before_a_run_begins():
    """A phase may have a share of 0 where others have more, so only the whole run can tell."""
    with pytest.raises(UserError, match=r"set opponents.most .*opponents=null"):
        check_run(load_config("rocket-1v1", ["env.count=8", "opponents.share=0", "rating=null"]))


def test_a_size_of_an_uneven_task_may_be_rated():
    for sizes in ("{1v1: 1, 2v1: 1}", "{1v0: 1}"):
        load_config("rocket-1v1", [f"env.rocket.sizes={sizes}", "rating.size=1v1"])


def test_the_title_names_all_sizes():
    assert config().title == "Rocket League 1v1, 2v2, 3v3"
    assert RocketKind().team_size(config()) == 3


@pytest.mark.parametrize(("observation", "words"), [
    ("{advanced_obs_plus: {team_size: 2}}", "env.rocket.observation has no room for 3v3: .*team_size: 3"),
    ("{default_obs: {zero_padding: 1}}", "env.rocket.observation has no room for 2v2: .*zero_padding: 3"),
    ("{default_obs: {zero_padding: null}}", "sees 92 numbers in 1v1 and 132 numbers in 2v2.*env.rocket.observation.*: 3}"),
])
def test_an_observation_must_be_the_same_in_all_sizes(observation, words):
    wrong = config(f"env.rocket.observation={observation}")
    with pytest.raises(EnvError, match=words):
        RocketKind().spaces(wrong, torch.device("cpu"))
    with pytest.raises(EnvError, match=words):
        make_env(wrong)


# --- how arenas and workers are divided ------------------------------------------------------------------------------


def best_division(total: int, weights: list[float], most: list[int]) -> float:
    """The least that a division may be off, of all that there are: the sum of squares."""
    options = itertools.product(*(range(1, limit + 1) for limit in most))
    wanted = [total * weight / sum(weights) for weight in weights]
    return min(sum((a - b) ** 2 for a, b in zip(parts, wanted, strict=True)) for parts in options if sum(parts) == total)


def test_a_division_is_the_closest_of_all_that_there_are():
    chance = random.Random(0)
    for _ in range(300):
        parts = chance.randint(1, 4)
        weights = [chance.choice([0.01, 0.1, 0.5, 1.0, 7.0]) for _ in range(parts)]
        most = [chance.randint(1, 7) for _ in range(parts)]
        total = chance.randint(parts, sum(most))
        found = divided(total, weights, most)
        assert sum(found) == total and all(1 <= part <= limit for part, limit in zip(found, most, strict=True))
        wanted = [total * weight / sum(weights) for weight in weights]
        off = sum((a - b) ** 2 for a, b in zip(found, wanted, strict=True))
        assert off == pytest.approx(best_division(total, weights, most))


def plans(*overrides: str, device: str = "cpu", **options: str) -> list[tuple[str, int, int]]:
    return [(str(plan.size), plan.arenas, plan.workers) for plan in shard_plans(config(*overrides, **options), device)]


def test_every_size_is_a_shard_on_every_device_and_with_both_simulators():
    expected = [("1v1", 2, 0), ("2v2", 4, 0), ("3v3", 2, 0)]
    assert plans() == plans("env.groups=4") == plans(device="cuda") == plans("env.rocket.simulator=rocketsim") == expected
    rocketsim = ("env.rocket.simulator=rocketsim", "env.groups=1")
    assert plans("env.workers=6", *rocketsim) == [("1v1", 2, 1), ("2v2", 4, 3), ("3v3", 2, 2)], "by cars"
    assert plans("env.workers=3", *rocketsim) == [("1v1", 2, 1), ("2v2", 4, 1), ("3v3", 2, 1)]
    assert plans(sizes="{1v1: 1000, 2v2: 1}") == [("1v1", 7, 0), ("2v2", 1, 0)], "at least one arena for each"
    assert plans(sizes="{1v1: 1, 2v2: 0}") == [("1v1", 4, 0), ("1v1", 4, 0)] == plans(sizes=None), "one size has groups"
    fewer = config().model_copy(update={"count": 1})
    assert [str(plan.size) for plan in shard_plans(fewer, "cpu")] == ["2v2"], "that with the most arenas, to be looked at"


# --- games -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
def test_every_size_plays_as_it_would_alone(simulator):
    """Rewards, observations, ends and beginnings of episodes; the team spirit makes rewards depend on the teams."""
    task = (f"env.rocket.simulator={simulator}", "env.rocket.team_spirit=0.5", "env.rocket.starts={kickoff: 1, random: 1}")
    env = environment(*task)
    assert env.num_rows == 2 * 2 + 4 * 4 + 2 * 6 and [group.stop for group in env.groups] == [4, 20, 32]
    obs, generator = env.reset(5), torch.Generator().manual_seed(0)
    actions = torch.randint(0, 90, (20, env.num_rows), generator=generator)
    steps = [env.step(action) for action in actions]
    assert any(step.truncated.any() for step in steps)
    for index, (size, rows) in enumerate(zip((1, 2, 3), env.groups, strict=True)):
        alone = environment(*task, f"env.rocket.blue={size}", f"env.rocket.orange={size}", "env.groups=1",
                            f"env.count={(rows.stop - rows.start) // (2 * size)}", sizes=None)
        # A single shard has the stream of the first one, so its seed is chosen to give the stream of this one.
        first = alone._shards[0].reset(stream_seed(5, f"arenas {index}"))
        assert torch.equal(first["obs"], obs["obs"][rows]) and torch.equal(first["action_mask"], obs["action_mask"][rows])
        for action, step in zip(actions, steps, strict=True):
            other = alone.step(action[rows])
            assert step.metrics.keys() == other.metrics.keys()
            pairs = [(step.obs["obs"], other.obs["obs"]), (step.final_obs["obs"], other.final_obs["obs"]),
                     *((getattr(step, name), getattr(other, name)) for name in ("reward", "terminated", "truncated", "active")),
                     *((step.metrics[name], other.metrics[name]) for name in step.metrics)]
            assert all(torch.equal(mine[rows], theirs) for mine, theirs in pairs)
        alone.close()
    env.close()


def test_rows_and_arenas_are_named_and_found_across_sizes():
    env = environment()
    env.reset(0)
    assert env.name_row(0) == "the car in seat 0 (blue) of arena 0"
    assert env.name_row(3) == "the car in seat 1 (orange) of arena 1"
    assert env.name_row(4) == "the car in seat 0 (blue) of arena 2"
    assert env.name_row(4 + 4 + 3) == "the car in seat 3 (orange) of arena 3"
    assert env.name_row(31) == "the car in seat 5 (orange) of arena 7"
    assert [env.state_of(arena).seats for arena in range(8)] == [2, 2, 4, 4, 4, 4, 6, 6]
    with pytest.raises(IndexError, match="no arena 8"):
        env.state_of(8)
    env.rest(torch.ones(8, dtype=torch.bool))
    env.close()


@pytest.mark.parametrize("simulator", [[], ["env.rocket.simulator=rocketsim", "env.workers=3"]], ids=["warp", "rocketsim"])
def test_saved_arenas_of_all_sizes_go_on_bit_for_bit_and_those_of_other_sizes_are_refused(simulator):
    env, same, other = (environment(*simulator, sizes=sizes) for sizes in (SIZES, SIZES, "{1v1: 0.5, 3v3: 0.5}"))
    actions = torch.randint(0, 90, (20, env.num_rows), generator=torch.Generator().manual_seed(0))
    for each in (env, same, other):
        each.reset(each is same)
    for action in actions[:9]:
        env.step(action)
    saved = env.save_state()
    same.load_state(saved)
    for action in actions[9:]:
        mine, theirs = env.step(action), same.step(action)
        assert torch.equal(mine.obs["obs"], theirs.obs["obs"]) and torch.equal(mine.reward, theirs.reward)
    with pytest.raises(EnvError, match="does not fit this task"):
        other.load_state(saved)
    for each in (env, same, other):
        each.close()


def test_one_size_by_name_is_that_size_bit_for_bit():
    named, plain = environment(sizes="{2v2: 3, 1v1: 0}"), environment("env.rocket.blue=2", "env.rocket.orange=2", sizes=None)
    assert len(named.groups) == len(plain.groups) == 2
    assert torch.equal(named.reset(3)["obs"], plain.reset(3)["obs"])
    for action in torch.randint(0, 90, (12, named.num_rows), generator=torch.Generator().manual_seed(0)):
        mine, theirs = named.step(action), plain.step(action)
        assert torch.equal(mine.obs["obs"], theirs.obs["obs"]) and torch.equal(mine.reward, theirs.reward)
    for env in (named, plain):
        env.close()


def test_goals_and_touches_are_also_told_by_size():
    env = environment("env.rocket.starts={save: 1.0}")
    obs = env.reset(0)
    for group, rows in enumerate(env.groups):
        env.send(group, torch.zeros(len(obs["obs"][rows]), dtype=torch.int64))
    for _ in env.groups:
        group, step = env.recv()
        name = f"size/{group + 1}v{group + 1}/per_minute/goals"
        assert [each for each in step.metrics if each.startswith("size/")] == [name, name.replace("goals", "touches")]
        assert torch.equal(step.metrics[name], step.metrics["per_minute/goals"])
    env.close()
    alone = environment(sizes=None)
    alone.reset(0)
    assert not [name for name in alone.step(torch.zeros(16, dtype=torch.int64)).metrics if name.startswith("size/")]
    alone.close()
