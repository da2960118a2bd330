"""Evaluation of walking: who is counted, on what, and what the numbers mean."""
from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.walk.robots import make_ground
from wavedash.cli import app
from wavedash.config import WalkConfig
from wavedash.errors import UserError
from wavedash.evaluate.measure import measure
from wavedash.loading import LoadedRun, load_run
from wavedash.walk.env import ENOUGH
from wavedash.walk.evaluate.comparison import compare
from wavedash.walk.evaluate.course import FIRST_SEED, Course, Watch, platform, way
from wavedash.walk.evaluate.results import Tile, Walked, WalkingResult
from wavedash.walk.evaluate.walking import _walk, evaluate_walking, stepping
from wavedash.walk.robot import STEP
from wavedash.walk.state import RobotState

WALKER = Path(__file__).with_name("walker")
"""A policy that was trained for 1.75 million steps of walk-flat, with small networks"""
ROUGH = WalkConfig(terrain={"stairs_up": {"weight": 3, "high": 0.1}, "rough": 1}, levels=3, resolution=0.1, terrain_seed=7,
                   observation={"proprioception": {"noise": 0.5}, "scandots": {"noise": 0.2, "drift": 0.1}},
                   randomize={"friction": {}, "pushes": {"speed": 0.7}})


@pytest.fixture(scope="module")
def walker() -> LoadedRun:
    return load_run(WALKER)


def test_every_tile_has_as_many_robots_on_terrain_that_nobody_was_trained_on() -> None:
    env, _ = Course.of(ROUGH, levels=[0, 2]).make_env(robots=4, device=torch.device("cpu"))
    env.reset(0)
    walk = Course.of(ROUGH).walk
    assert env.state.tile.tolist() == [tile for tile in (0, 2, 3, 5) for _ in range(4)], "kind * levels + level"
    assert env.ground.length == pytest.approx(20.0) and walk.terrain_seed == FIRST_SEED + 1
    other = Course.of(ROUGH.model_copy(update={"terrain_seed": 8})).walk
    assert other.terrain_seed == walk.terrain_seed, "policies are compared on the same terrain"
    for _ in range(3):
        env.step(torch.ones(16, 12))
        assert env.state.tile.tolist() == [tile for tile in (0, 2, 3, 5) for _ in range(4)]
    env.close()


def test_sensors_are_exact_unless_asked_and_only_pushes_are_left_of_randomisation() -> None:
    exact, real = Course.of(ROUGH).walk, Course.of(ROUGH, noisy=True, pushes=True).walk
    assert exact.observation == {"proprioception": {"noise": 0.0}, "scandots": {"noise": 0.0, "drift": 0.0}}
    assert real.observation == {"proprioception": {"noise": 1.0}, "scandots": {"noise": 1.0, "drift": 0.1}}
    assert (exact.randomize, real.randomize) == ({}, {"pushes": {"speed": 0.7}})
    assert not exact.progressive, "pushes are as strong on the first level"


def test_terrain_can_be_chosen_also_what_the_run_does_not_have() -> None:
    chosen = Course.of(ROUGH, terrain=["stairs_up", "gaps"], levels=[2, 0, 2])
    assert chosen.walk.terrain == {"stairs_up": {"high": 0.1, "weight": 1.0}, "gaps": {"weight": 1.0}}
    assert chosen.tiles == (0, 2, 3, 5)
    flat = WalkConfig(terrain={"flat": 1}, levels=1)
    assert Course.of(flat).tiles == (0,)
    assert Course.of(flat, terrain=["stones"]).walk.levels == 10, "one level would be the hardest alone"
    with pytest.raises(UserError, match="no level 3: this terrain has levels 0 to 2"):
        Course.of(ROUGH, levels=[3])


@pytest.mark.parametrize(("wrong", "says"), [
    ({"speed": 0.0}, "from 0.01 to 10 m/s, not 0.0"), ({"speed": float("nan")}, "not nan"), ({"speed": 1e3}, "not 1000.0"),
    ({"seconds": 0.005}, "from 0.02, a step, to 1,000,000, not 0.005"), ({"seconds": float("inf")}, "not inf"),
    ({"terrain": []}, "--terrain names none"), ({"levels": []}, "--levels names none"),
])
def test_a_course_that_nobody_can_walk_is_refused(wrong: dict[str, Any], says: str) -> None:
    """Of a walk without a step there are no means."""
    with pytest.raises(UserError, match=says):
        Course.of(ROUGH, **wrong)


def test_the_time_suffices_for_the_way_at_eighty_percent_of_the_speed() -> None:
    ground = make_ground(layout="track")
    course = Course.of(ROUGH, speed=0.5)
    assert way(ground) == pytest.approx(18.5)
    assert course.limit(ground) == pytest.approx(18.5 / 0.4) and course.goal(ground) == pytest.approx(18.5)
    assert Course.of(ROUGH, speed=0.5, seconds=10.0).goal(ground) == pytest.approx(ENOUGH * 5.0)


def test_distance_is_forward_and_the_end_counts_as_the_whole_way() -> None:
    watch, state = Watch(), RobotState.zeros(5)
    watch.context = SimpleNamespace(ground=make_ground(layout="track"))
    watch.bind(state)
    state.origin[:, 0] = -9.1
    state.position[:, 0] = torch.tensor([-5.1, 9.5, 9.6, 0.0, -9.9])
    state.position[:, 1] = torch.tensor([0.5, 0.0, 1.7, -1.7, 0.0])
    assert watch(state, state, None).tolist() == [False, True, True, True, True]
    torch.testing.assert_close(watch.distance, torch.tensor([4.0, 18.5, 18.5, 9.1, 0.0]))
    assert watch.finished.tolist() == [False, True, True, False, False]
    assert watch.left.tolist() == [False, False, False, True, True]


class Scripted:
    """A policy: robots with odd numbers pull up their legs and fall, the others stand."""

    def __init__(self) -> None:
        self.forgotten: list[torch.Tensor | None] = []

    def step(self, obs, deterministic):
        action = torch.zeros(len(obs["proprioception"]), 12)
        action[1::2] = torch.tensor([0.0, 1.0, -1.0]).repeat(4) * (1 + (torch.arange(12) > 5))
        action[1::2, 0::3] = 1.0
        return action

    def reset(self, rows=None):
        self.forgotten.append(rows if rows is None else rows.clone())


def test_the_first_episode_of_every_robot_is_counted_and_memory_is_cleared_where_one_ends() -> None:
    config = WalkConfig(terrain={"flat": 1}, levels=1, observation={"proprioception": {}})
    env, watch = Course.of(config, seconds=4.0).make_env(robots=4, device=torch.device("cpu"))
    env.reset(0)
    policy = Scripted()
    found = _walk(env, watch, policy, True, steps=200, progress=None)
    env.close()
    assert found["fell"].tolist() == [False, True, False, True]
    assert found["seconds"][[0, 2]].tolist() == pytest.approx([4.0, 4.0])
    assert (found["seconds"][[1, 3]] < 3.0).all(), "what comes after a fall is another episode"
    assert found["error"][[0, 2]].tolist() == pytest.approx([0.5, 0.5], abs=0.03), "they stand, and should walk 0.5 m/s"
    assert (found["energy"][[1, 3]] > found["energy"][[0, 2]]).all() and (found["distance"] < 0.7).all()
    assert policy.forgotten[0] is None and len(policy.forgotten) == 201
    ends = torch.stack(policy.forgotten[1:])  # [T, E]
    assert ends[-1, 0] and not ends[:-1, 0].any()
    assert round(float(found["seconds"][1]) / STEP) == int(ends[:, 1].nonzero()[0]) + 1


def tile(**changed) -> Tile:
    numbers = {"terrain": "stairs_up", "level": 0, "difficulty": 0.0, "distance": [18.5, 4.0], "seconds": [40.0, 10.0],
               "fell": [False, True], "left": [False, False], "success": [True, False], "error": [0.1, 0.3],
               "energy": [4_000.0, 500.0]}
    return Tile(**{**numbers, **changed})


def test_results_are_what_their_names_say() -> None:
    walked = Walked([tile()], limit=46.25, weight=122.0)
    assert (walked.robots, walked.distance, walked.fell, walked.success.value) == (2, 11.25, 1, 0.5)
    assert walked.time_to_fall == pytest.approx((46.25 + 10.0) / 2), "who does not fall counts with the limit"
    assert walked.error == pytest.approx(0.2) and walked.power == pytest.approx(4_500 / 50)
    assert walked.energy_per_metre == pytest.approx(200.0) and walked.cost_of_transport == pytest.approx(200 / 122)
    assert walked.spread == pytest.approx(12.7062 * (14.5 / 2**0.5) / 2**0.5, rel=1e-5), "Student's, with one degree of freedom"
    nowhere = Walked([tile(distance=[0.0, 0.1])], limit=46.25, weight=122.0)
    assert nowhere.cost_of_transport is None, "energy per metre of robots that go nowhere says nothing"


def test_tiles_count_alike_and_their_difference_is_not_taken_for_noise() -> None:
    easy, hard = tile(distance=[18.5] * 5), tile(level=1, distance=[2.0] * 5)
    both = Walked([easy, hard], limit=46.25, weight=122.0)
    assert both.distance == pytest.approx(10.25) and both.spread == 0.0


def result(**changed) -> WalkingResult:
    numbers = {"checkpoint": Path("runs/a"), "deterministic": True, "noisy": False, "pushes": False, "speed": 0.5, "way": 18.5,
               "platform": 1.0, "limit": 46.25, "goal": 18.5, "weight": 122.0, "terrain_seed": 1,
               "tiles": [tile(), tile(level=5, distance=[2.0, 3.0])]}
    return WalkingResult(**{**numbers, **changed})


def test_a_table_has_a_line_for_each_terrain_and_a_column_for_each_level() -> None:
    lines = str(result()).splitlines()
    assert lines[5].split() == [
        "stairs_up", "6.88", "±", "46.17", "50.0", "(15.0", "to", "85.0)", "28.1", "0.200", "90.0", "2.68"]
    assert lines[7].split() == ["distance", "m", "level", "0", "5"] and lines[8].split() == ["stairs_up", "11.2", "2.5"]
    assert lines[11].split() == ["stairs_up", "50", "50"]
    plain = json.loads(json.dumps(result().plain(), allow_nan=False))
    found = [(x["terrain"], x["level"], x["distance"]) for x in plain["tiles"]]
    assert found == [("stairs_up", 0, 11.25), ("stairs_up", 5, 2.5)]


def test_what_everybody_walks_on_the_platform_can_be_left_out() -> None:
    """Robots that stop at the edge of the platform, or before it, have walked nothing of the terrain."""
    ground = make_ground(layout="track", terrain={"stones": 1})
    line = torch.linspace(ground.start[0], ground.start[0] + 3.0, 301)
    height = ground.height(torch.zeros(301, dtype=torch.int64), torch.stack((line, torch.zeros_like(line)), -1).unsqueeze(1))
    level = int((height.squeeze(-1) == 0).int().cumprod(0).sum()) / 100
    assert platform(ground) == pytest.approx(1.0) and level >= platform(ground)
    stopped, crossed = tile(distance=[0.4, 1.0]), tile(distance=[1.5, 18.5])
    walked = Walked([stopped, crossed], limit=46.25, weight=122.0).beyond(1.0)
    assert [one.distance for one in walked.tiles] == [[0.0, 0.0], [0.5, 17.5]]
    assert walked.distance == pytest.approx(4.5) and walked.success.value == 0.5, "all else is as it was"
    assert result().plain()["terrains"][0]["beyond_platform"] == pytest.approx(result().everything.beyond(1.0).distance)


def test_a_captured_step_is_given_every_action_and_the_same_robots_fall() -> None:
    """On a GPU a step reads its action from one place. Here the capture runs eagerly."""
    config = WalkConfig(terrain={"flat": 1}, levels=1, observation={"proprioception": {}})
    found = []
    for capturable in (False, True):
        env, watch = Course.of(config, seconds=2.0).make_env(robots=4, device=torch.device("cpu"))
        env.capturable = capturable
        advance = stepping(env)
        assert (advance == env.step) != capturable
        env.reset(0)
        found.append(_walk(env, watch, Scripted(), True, steps=100, progress=None, advance=advance))
        env.close()
    assert found[0]["fell"].tolist() == [False, True, False, True]
    for name, x in found[0].items():
        assert torch.equal(x, found[1][name]), name


def test_policies_are_compared_on_the_same_terrain() -> None:
    blind = result(checkpoint=Path("runs/b"), tiles=[tile(distance=[4.0, 4.0]), tile(level=5, distance=[1.0, 2.0])])
    lines = compare({"vision": result(), "blind": blind}).splitlines()
    assert lines[6].split() == ["stairs_up", "6.88", "±", "46.17", "2.75", "±", "3.18", "(0.40", "x)"]
    assert lines[9] == "without the first 1 m, which are level:"
    assert lines[11].split() == ["stairs_up", "5.88", "±", "46.17", "1.75", "±", "3.18", "(0.30", "x)"]
    assert lines[13] == "the same on the harder half of the levels (5):"
    assert lines[-1].split() == ["stairs_up", "1.50", "±", "6.35", "0.50", "±", "6.35", "(0.33", "x)"]
    assert "harder" not in compare({name: each.harder for name, each in (("vision", result()), ("blind", blind))})
    assert lines[1] == "blind: runs/b; sensors are exact, robots are not pushed"
    with pytest.raises(UserError, match="different --speed or --seconds"):
        compare({"vision": result(), "blind": result(speed=0.3)})
    with pytest.raises(UserError, match="different terrain"):
        compare({"vision": result(), "blind": result(tiles=[tile()])})


def test_a_comparison_says_where_runs_have_other_ground(walker: LoadedRun) -> None:
    """Runs may give a kind of terrain options of their own: with roughness, stones are not those of a run without it."""
    def walked(**terrain: Any) -> WalkingResult:
        env = walker.config.env
        assert env.walk is not None
        changed = env.model_copy(update={"walk": env.walk.model_copy(update={"terrain": terrain, "resolution": 0.1})})
        run = replace(walker)
        run.__dict__["config"] = walker.config.model_copy(update={"env": changed})
        return evaluate_walking(run, robots=1, seconds=STEP, terrain=["stones", "gaps"], levels=[3])

    plain, same, rough = walked(stones=1.0), walked(stones=2.0, gaps=1.0), walked(stones={"roughness": 0.02})
    assert "not the same ground" not in compare({"a": plain, "b": same}), "weights change nothing"
    assert "not the same ground in these runs, which give it other options: stones\n" in compare({"a": plain, "b": rough})


def test_options_of_another_kind_are_refused() -> None:
    with pytest.raises(UserError, match=r"--random is not for robots on flat .*its options are --episodes, --stoch"):
        measure(WALKER, random=True)
    with pytest.raises(UserError, match="--terrain is not for Rocket League 1v1"):
        measure("champion", terrain=["stones"])
    with pytest.raises(UserError, match=r"--noisy does not go with --against"):
        app(["eval", str(WALKER), "--against", "idle", "--noisy"], standalone_mode=False)
    with pytest.raises(UserError, match="there is no terrain 'stoness'; did you mean 'stones'"):
        measure(WALKER, terrain=["stoness"])


@pytest.mark.slow
def test_a_policy_that_walks_reaches_the_end_and_the_command_writes_all_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app(["eval", str(WALKER), "--episodes", "8", "--json", str(tmp_path / "walk.json")], standalone_mode=False)
    printed = capsys.readouterr().out
    (tile,) = json.loads((tmp_path / "walk.json").read_text())["tiles"]
    assert tile["robots"] == 8 and tile["success"] >= 0.75 and tile["fell"] <= 1
    assert max(tile["of_each_robot"]["distance"]) == pytest.approx(18.5)
    fastest = min(tile["of_each_robot"]["seconds"])
    assert 18.5 / fastest == pytest.approx(0.5, abs=0.1), "it walks about as fast as it is told"
    assert 0.3 < tile["cost_of_transport"] < 3.0
    assert f"{tile['distance']:.2f} ± " in printed


@pytest.mark.slow
def test_more_robots_than_fit_walk_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wavedash.walk.evaluate.walking.MOST_ON_CPU", 4)
    found = evaluate_walking(WALKER, robots=5, seconds=2.0, terrain=["flat", "rough"], levels=[0])
    assert [len(tile.distance) for tile in found.tiles] == [5, 5]
    assert len({round(x, 6) for tile in found.tiles for x in tile.distance}) == 10, "no robot is a copy of another"
