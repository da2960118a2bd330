"""Recordings of walks: what is in the file is what MuJoCo computed."""
from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from wavedash.cli.app import app
from wavedash.config import PolicyConfig
from wavedash.loading import load_run
from wavedash.policy.actor_critic import ActorCritic
from wavedash.recordings import Recording, read
from wavedash.trained_policy import TrainedPolicy
from wavedash.walk.env import WalkEnv
from wavedash.walk.evaluate.walking import evaluate_walking
from wavedash.walk.model import GROUND, make_model
from wavedash.walk.recording import ANGLE, TURN, Frames, Walk, make_course_env, record_walk
from wavedash.walk.state import place_of

WALKER = Path(__file__).parent / "walker"
"""A policy that walks on flat ground"""


@pytest.fixture(scope="module")
def run():
    return load_run(WALKER)


@pytest.fixture(scope="module")
def on_stairs(run):
    """Two seconds on stairs, with depth images."""
    return record_walk(run, "stairs_up", 5, seconds=2.0, depth=True)


def matrix(quaternion):
    found = np.empty(9)
    mujoco.mju_quat2Mat(found, quaternion / np.linalg.norm(quaternion))
    return found.reshape(3, 3)


def test_geoms_of_the_file_are_where_mujoco_has_them(run, tmp_path):
    env = make_course_env(run, "stairs_up", 5)
    walk, records, poses = Walk(run, env), [], []
    model = make_model(env.ground)
    data = mujoco.MjData(model)
    for _ in range(80):
        if (record := walk.record()) is not None:
            records.append(record)
            data.qpos[:] = env.state.memory[0, place_of("position", "joint_position")].numpy()
            mujoco.mj_forward(model, data)  # all of MuJoCo, not the part of it that the recording asks
            poses.append((data.geom_xpos.copy(), data.geom_xmat.copy().reshape(-1, 3, 3), data.qpos.copy()))
        walk.step()
    header = walk.frames.header("a walk", "eval", "walker")
    file = Recording(header, walk.frames.layout, np.concatenate(records)).write(tmp_path / "walk.wdr")
    env.close()

    found = read(file)
    robot = [geom for geom in range(model.ngeom) if geom != model.geom(GROUND).id]
    assert len(found.header["scene"]["geoms"]) == len(robot) == 19 and found.frames == len(poses) == 40
    assert poses[-1][2][0] > poses[0][2][0] + 0.2, "it walks"
    for frame, (positions, rotations, qpos) in enumerate(poses):
        assert np.abs(found["geoms.position"][frame] - positions[robot]).max() < 1e-6  # float32 of numbers up to 10 m
        turned = np.stack([matrix(q) for q in found["geoms.rotation"][frame]])
        assert np.abs(turned - rotations[robot]).max() < 4 * TURN
        assert np.abs(found["joints"][frame] - qpos[7:]).max() <= ANGLE / 2 + 1e-9
        assert np.abs(found["orientation"][frame] - qpos[3:7]).max() <= TURN / 2 + 1e-9
    kinds = [mujoco.mjtGeom(kind).name.removeprefix("mjGEOM_").lower() for kind in model.geom_type[robot]]
    assert [geom["kind"] for geom in found.header["scene"]["geoms"]] == kinds
    assert np.allclose([geom["size"] for geom in found.header["scene"]["geoms"]], model.geom_size[robot])


def test_the_scene_has_the_ground_that_the_robot_walks_on(run, on_stairs):
    scene = on_stairs.header["scene"]
    heights = np.frombuffer(base64.b64decode(scene["heights"]), "<i2").reshape(scene["rows"], scene["columns"]) / 1000
    env = make_course_env(run, "stairs_up", 5)
    env.reset(0)
    ground, (x, y) = env.ground, scene["origin"]
    for row, column in ((0, 0), (40, 200), (80, 400), (13, 77)):
        xy = torch.tensor([[[x + column * scene["resolution"], y + row * scene["resolution"]]]], dtype=torch.float64)
        assert abs(float(ground.height(env.state.tile, xy.float())) - heights[row, column]) <= 0.00051
    env.close()
    assert heights.max() > 1.0 and scene["terrain"] == "stairs_up" and scene["level"] == 5
    lowest = on_stairs["geoms.position"][..., 2].min()
    assert -0.01 < lowest - 0.02 < 0.02, "its feet, of 2 cm, are on the platform of height 0"


def test_value_rewards_and_ticks_are_those_of_the_policy(run, on_stairs):
    assert on_stairs["tick"].tolist() == list(range(0, 100, 2)) and on_stairs.seconds == 2.0
    assert on_stairs.header["reward_terms"] == list(load_run(WALKER).config.env.walk.rewards)
    assert np.all(on_stairs["reward"][0] == 0) and np.all(np.abs(on_stairs["reward"][5:, :2]).sum(1) > 0)
    values = on_stairs["value"]
    assert np.isfinite(values).all() and len(set(values.tolist())) == len(values)
    env = make_course_env(run, "stairs_up", 5, seconds=2.0)
    obs = env.reset(0)
    assert values[0] == pytest.approx(float(run.policy.policy.act(obs, {}, deterministic=True).value), abs=1e-6)
    env.close()


def test_depth_is_recorded_where_it_is_asked_for(run, on_stairs):
    images = on_stairs["depth"]
    assert images.shape == (50, 58, 87) and 0 < images.min() < 0.5 and images.max() == 1.0
    assert np.abs(images[0] - images[-1]).max() > 0.1, "what it sees changes as it walks"
    assert "depth" not in record_walk(run, seconds=0.1), "the policy has no camera"


def test_scandots_lie_on_the_ground(tmp_path):
    """An environment with scandots, without a policy for it."""
    from wavedash.envs.make import make_env

    config = load_run(WALKER).config.env
    walk = config.walk.model_copy(update={"terrain": {"stairs_up": 1.0}, "observation": {"scandots": {}, "depth": {}}})
    env = make_env(config.model_copy(update={"walk": walk, "count": 1}), torch.device("cpu"))
    assert isinstance(env, WalkEnv)
    env.reset(3)
    frames = Frames(env)
    record = frames.record(0, 0.0)
    points = frames.layout.decode(record, "scandots")[0]
    heights = env.ground.height(env.state.tile, torch.from_numpy(points[None, :, :2]))[0].numpy()
    assert len(points) > 50 and np.abs(points[:, 2] - heights).max() < 1e-5
    seen = env.seen["depth"][0, 0].numpy()
    assert np.abs(frames.layout.decode(record, "depth")[0] - seen).max() <= 0.5 / 255 + 1e-9, "what the policy has"
    assert frames.scene()["far"] == 2.0
    env.close()


def test_a_fall_and_a_new_command_are_events(run):
    env = make_course_env(run)
    walk = Walk(run, env)
    for _ in range(20):
        assert walk.step() == ([], False)
    env.task.commands.left.fill_(1)
    (happened,), over = walk.step()
    assert happened["kind"] == "command" and "0.50 m/s" in happened["text"] and happened["frame"] == 10 and not over
    env.state.orientation.copy_(torch.tensor([[0.0, 1.0, 0.0, 0.0]]))  # on its back
    env.simulator.place(torch.ones(1, dtype=torch.bool))
    (happened,), over = walk.step()
    assert happened == {"frame": 10, "kind": "fall", "car": 0, "text": "the robot fell"} and over
    assert walk.tick == 0 and walk.record() is not None, "another episode has begun"
    env.close()


def test_render_writes_a_recording(tmp_path):
    file = tmp_path / "walk.wdr"
    result = CliRunner().invoke(app, ["render", str(WALKER), "--recording", str(file), "--seconds", "1.2"])
    assert result.exit_code == 0, result.output
    found = read(file)
    assert found.header["kind"] == "walk" and found.frames == 30 and "1.2 s" in result.output
    assert found.header["players"][0]["name"] == "walker" and found.header["events"][-1]["kind"] == "end"


@pytest.mark.parametrize(("options", "message"), [
    (["--recording", "a.gif"], "must end in .wdr"),
    (["--recording", "a.wdr", "--video", "a.gif"], "either"),
    (["--recording", "a.wdr", "--level", "30"], "there is no level 30"),
])
def test_what_cannot_be_recorded_is_said(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["render", str(WALKER), *options])
    assert result.exit_code != 0 and message in f"{result.output}{result.exception}"
    assert not list(tmp_path.iterdir())


def test_eval_records_walks_on_the_hardest_tracks_first(tmp_path):
    words = ["eval", str(WALKER), "--terrain", "stairs_up,flat", "--levels", "0,4", "--episodes", "1", "--seconds", "1"]
    plain = CliRunner().invoke(app, words)
    done = CliRunner().invoke(app, [*words, "--record", "3", "--recordings", str(tmp_path)])
    assert done.exit_code == 0 and done.stdout == plain.stdout and f"wrote 3 recordings into {tmp_path}" in done.stderr
    scenes = [read(file).header["scene"] for file in sorted(tmp_path.glob("*.wdr"))]
    assert sorted((scene["terrain"], scene["level"]) for scene in scenes[:2]) == [("flat", 4), ("stairs_up", 4)]
    assert len(scenes) == 3 and scenes[2]["level"] == 0


def test_a_recorded_walk_knows_nothing_of_the_evaluation_before_it(run):
    """`wavedash eval RUN --record N` of a policy with memory: that of the robots that were measured is another's."""
    untrained = run.policy.policy
    recurrent = ActorCritic(untrained.observation_space, untrained.action_space,
                            PolicyConfig(hidden=[8], memory={"kind": "gru", "size": 8}))
    measured = replace(run, policy=TrainedPolicy(recurrent))
    evaluate_walking(measured, robots=2, seconds=0.1)
    after, fresh = (record_walk(each, seconds=0.2) for each in (measured, replace(run, policy=TrainedPolicy(recurrent))))
    assert np.array_equal(after["joints"], fresh["joints"])
