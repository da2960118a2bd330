"""An exported policy walks in MuJoCo alone as it does here: the same observations and targets step by step, and as far."""
from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from tests.walk.robots import STILL
from wavedash.config import EnvConfig, PolicyConfig, WalkConfig
from wavedash.envs.vec_env import Obs
from wavedash.export import export_policy
from wavedash.export.actor import Actor
from wavedash.export.description import describe
from wavedash.export.formats import FORMATS
from wavedash.loading import load_run
from wavedash.policy.actor_critic import ActorCritic
from wavedash.trained_policy import TrainedPolicy
from wavedash.walk import run_in_mujoco
from wavedash.walk.deployment import LOOP, files
from wavedash.walk.env import WalkEnv
from wavedash.walk.mujoco_batch import MujocoSimulator
from wavedash.walk.run_in_mujoco import Ground, Policy, Robot

WALKER = Path(__file__).with_name("walker")
SEES = {"proprioception": {"noise": 0.5}, "commands": {}, "privileged": {}}
CASES: dict[str, dict[str, Any]] = {
    "plane": {"terrain": {"flat": 1}, "observation": SEES},
    "scandots": {"terrain": {"obstacles": {"weight": 1, "density": 2.0}}, "observation": {**SEES, "scandots": {}},
                 "action": {"joint_targets": {"scale": [0.2, 0.4, 0.3]}}},
    "feet": {"terrain": {"stairs_up": 1}, "observation": {**SEES, "foot_scan": {}}},
    "depth": {"terrain": {"rough": 1}, "observation": {**SEES, "depth": {"period": [1, 1], "latency": [0, 0]}}},
}
STEPS = {"plane": 600, "scandots": 400, "feet": 400, "depth": 40}
"""Steps that are compared; MuJoCo needs 20 ms for an image"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "bot"
    done = export_policy(WALKER, "onnx", folder, episodes=1)
    assert [file.name for file in done.beside] == ["robot.json", "robot.xml", "run_in_mujoco.py"]
    assert "beside    robot.json, robot.xml, run_in_mujoco.py" in str(done)
    return folder


def deployed(folder: Path, walk: WalkConfig, policy: ActorCritic) -> Path:
    """The files of a policy with these weights."""
    actor = Actor(policy)
    told = describe(actor, policy, SimpleNamespace(path=folder, step=0))
    (folder / "policy.onnx").write_bytes(FORMATS["onnx"].write(actor, json.dumps(told)))
    for name, content in files(walk, told, {"onnx": "policy.onnx"}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def random_policy(env: WalkEnv) -> ActorCritic:
    """A policy with memory, whose actions differ from step to step and from joint to joint."""
    torch.manual_seed(0)
    config = PolicyConfig(hidden=[32], memory={"kind": "gru", "size": 16},
                          actor_keys=[key for key in env.observation_space if key != "privileged"])
    policy = ActorCritic(env.observation_space, env.action_space, config, normalize_obs=5.0)
    for name, parameter in policy.named_parameters():
        if parameter.dim() > 1 and "critic" not in name:
            torch.nn.init.normal_(parameter, 0.0, 2.0 / np.sqrt(parameter[0].numel()))
    return policy


def put(robot: Robot, simulator: MujocoSimulator) -> None:
    """Puts a robot into the state in which that of the environment begins."""
    begun = (x[0].numpy() for x in (simulator.qpos, simulator.qvel, simulator.target))
    robot.data.qpos[:], robot.data.qvel[:], robot.data.ctrl[:] = begun
    robot.begin_here()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_observations_and_targets_are_equal_step_by_step(case: str, tmp_path: Path) -> None:
    walk = WalkConfig(**CASES[case], layout="track", levels=1, hardest=0.6, endings={"time_out": {"seconds": 60}},
                      commands={"curve": 1.0}, command_seconds=1.0)
    exact = walk.model_copy(update={"observation": {**walk.observation, "proprioception": {}}})
    env = WalkEnv.configured(EnvConfig(walk=exact, count=1))
    policy = random_policy(env)
    folder = deployed(tmp_path, walk, policy)
    heights = None if case == "plane" else np.load(folder / f"terrain/{next(iter(walk.terrain))}.npy")
    robot, live, alone = Robot(folder, Ground(heights)), TrainedPolicy(policy), Policy(folder / "policy.onnx")
    obs = env.reset(1)
    simulator = env.simulator
    assert isinstance(simulator, MujocoSimulator)
    put(robot, simulator)
    seen = []
    for _ in range(STEPS[case]):
        robot.speed, robot.heading = float(env.state.command[0, 0]), float(env.state.heading[0])
        mine = robot.observe()
        assert mine.keys() == set(env.observation_space) - {"privileged"}
        for key, x in mine.items():
            # Where a ray grazes an edge, float32 and float64 may differ on what it meets: not more than a pixel in a thousand.
            wrong = np.abs(x - obs[key][0].numpy()) > 1e-4
            assert wrong.mean() <= (1e-3 if key == "depth" else 0.0), key
        seen.append(np.concatenate([x.ravel() for key, x in mine.items() if key != "depth"]))
        action = live.step(obs)
        if case != "depth":
            np.testing.assert_allclose(alone(mine), action[0].numpy(), atol=1e-4)
        robot.step(action[0].numpy())
        obs = env.step(action).obs
        np.testing.assert_array_equal(robot.data.ctrl, simulator.target[0].numpy())
        np.testing.assert_array_equal(robot.data.qpos, simulator.qpos[0].numpy(), "physics is bit for bit the same")
    env.close()
    changed = np.ptp(np.stack(seen), 0) > 1e-3
    assert changed[:46 + 2].mean() > 0.9, "a comparison of robots that rest would prove nothing"
    if case in ("scandots", "feet"):
        assert changed.all() or changed.mean() > 0.95


def loop_alone(folder: Path, *arguments: str) -> float:
    """m forward, as the file prints it when it runs where there is no Wavedash and no torch."""
    code = ("import runpy, sys; sys.modules['torch'] = sys.modules['wavedash'] = None; sys.argv = sys.argv[1:]; "
            "runpy.run_path(sys.argv[0], run_name='__main__')")
    done = subprocess.run([sys.executable, "-c", code, "run_in_mujoco.py", *arguments], cwd=folder, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    forward, _, rest = done.stdout.partition(" m forward")
    assert "fell" not in rest
    return float(forward)


@pytest.mark.slow
def test_it_walks_as_far_alone_as_it_does_here(exported: Path) -> None:
    loaded = load_run(WALKER)
    walk = loaded.config.env.walk.model_copy(update={
        "starts": STILL, "commands": {"ahead": {"speed": 0.5, "turn": 0.0}}, "command_seconds": 60.0})
    env = loaded.make_env(1, loaded.config.env.model_copy(update={"walk": walk}))
    assert isinstance(env, WalkEnv)
    obs: Obs = env.reset(0)
    for _ in range(500):
        obs = env.step(loaded.policy.step(obs)).obs
    here = float(env.state.position[0, 0] - env.state.origin[0, 0])
    env.close()
    alone = loop_alone(exported, "--seconds", "10", "--speed", "0.5")
    assert here > 4.0
    # Two runtimes round differently. A steady gait forgets it: 900 steps from 12 starts differed by 3e-7 m.
    assert alone == pytest.approx(here, abs=0.01)
    assert loop_alone(exported, "--seconds", "10", "--speed", "0.3") < 0.8 * alone, "it does what it is told"
    np.save(exported / "level.npy", np.zeros((161, 161), np.float32))
    assert loop_alone(exported, "--ground", "level.npy", "--seconds", "2") > 0.2, "on ground of one's own, where it had none"


def test_the_loop_imports_nothing_of_wavedash_and_nothing_heavy() -> None:
    imported = {name.name.partition(".")[0] for node in ast.walk(ast.parse(LOOP.read_text())) if isinstance(node, ast.Import)
                for name in node.names}
    imported |= {node.module.partition(".")[0] for node in ast.walk(ast.parse(LOOP.read_text()))
                 if isinstance(node, ast.ImportFrom)}
    assert imported - set(sys.stdlib_module_names) == {"numpy", "mujoco", "onnxruntime"}


@pytest.mark.slow
def test_what_the_file_says_is_what_the_model_has(exported: Path) -> None:
    about = json.loads((exported / "robot.json").read_text())
    model = mujoco.MjModel.from_xml_path(str(exported / about["model"]))
    assert [model.joint(i + 1).name for i in range(model.nu)] == about["joints"]
    assert [model.actuator(i).name for i in range(model.nu)] == about["joints"]
    assert (1 / model.opt.timestep, about["rate"]) == (about["pd"]["rate"], 50)
    np.testing.assert_array_equal(model.actuator_gainprm[:, 0], about["pd"]["kp"])
    np.testing.assert_array_equal(model.actuator_biasprm[:, 1:3], [[-about["pd"]["kp"], -about["pd"]["kd"]]] * model.nu)
    torque = about["pd"]["max_torque"]
    np.testing.assert_array_equal(model.actuator_forcerange, [[-torque, torque]] * model.nu)
    assert about["home"] == [0.0, 0.9, -1.8] * 4 and about["action"]["scale"] == [0.5, 0.75, 0.75] * 4
    for key, sees in about["observations"].items():
        assert sum(part["size"] for part in sees["parts"]) == np.prod(sees["shape"]), key
    assert [x["observation"] for x in about["inputs"]] == list(about["observations"]) == ["commands", "proprioception"]
    assert about["policy"] == "policy.onnx" and (exported / "policy.onnx").is_file()


def test_heights_are_those_of_the_ground(tmp_path: Path) -> None:
    from wavedash.walk.terrain.ground import Ground as Tiles
    from wavedash.walk.terrain.layout import Layout

    tiles = Tiles.named({"obstacles": 1}, levels=1, layout=Layout.named("tile", 0.1), seed=3)
    points = torch.rand(2000, 2, generator=torch.Generator().manual_seed(0)) * 10 - 5  # some are beyond the border
    expected = tiles.height(torch.zeros(1, dtype=torch.int64), points[None])[0]
    found = run_in_mujoco.Ground(tiles.heights[0].numpy(), 0.1).height(points.numpy())
    np.testing.assert_allclose(found, expected, atol=1e-5)
