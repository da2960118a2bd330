"""A saved environment goes on bit for bit, in the middle of episodes, and so does a run that was killed."""
from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load, save

from tests.walk.robots import make_env
from wavedash.envs.errors import EnvError
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.saved import SavedError
from wavedash.training import resume, train
from wavedash.walk.env import WalkEnv
from wavedash.walk.mujoco_batch import MujocoSimulator

EVERYTHING: dict[str, Any] = {
    "terrain": {"stairs_up": 1, "stones": 1, "rough": 1}, "levels": 4, "first_level": 3, "resolution": 0.1,
    "observation": {"proprioception": {"noise": 1}, "commands": {}, "privileged": {}, "scandots": {"noise": 1, "drift": 0.05},
                    "depth": {"noise": 1}},
    "commands": {"ahead": 1, "curve": 1, "in_place": 1}, "command_seconds": 0.3,
    "rewards": {"track_velocity": 1, "air_time": 50, "foot_jerk": 1e-3, "action_rate": 0.1}, "starts": {"stand": 1},
    "endings": {"fallen": {}, "off_tile": {}, "time_out": {"seconds": 0.7}},
    "randomize": {"payload": {}, "centre_of_mass": {}, "friction": {}, "motor_strength": {}, "gains": {}, "latency": {},
                  "pushes": {"seconds": 0.3}},
}
ROBOTS, BEFORE, AFTER = 8, 30, 50


def actions(count: int, seed: int = 0) -> torch.Tensor:
    return 2 * torch.rand(count, ROBOTS, 12, generator=torch.Generator().manual_seed(seed)) - 1


def trace(env: WalkEnv, taken: torch.Tensor) -> list[torch.Tensor]:
    """Everything that steps return, and the simulator's positions and velocities in full precision."""
    assert isinstance(env.simulator, MujocoSimulator)
    seen: list[torch.Tensor] = []
    for action in taken:
        step = env.step(action)
        assert isinstance(step.obs, dict) and isinstance(step.final_obs, dict)
        seen += [x.clone() for x in (*step.obs.values(), *step.final_obs.values(), step.reward, step.terminated, step.truncated,
                                     *step.metrics.values(), env.simulator.qpos, env.simulator.qvel)]
    return seen


def equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return len(one) == len(other) and all(torch.equal(x, y) for x, y in zip(one, other, strict=True))


@pytest.fixture(scope="module")
def halfway() -> tuple[dict[str, torch.Tensor], list[torch.Tensor], dict[str, torch.Tensor]]:
    """What is saved in the middle of episodes, through a file, what happens then, and what is saved at the end."""
    env = make_env(ROBOTS, **EVERYTHING)
    env.reset(5)
    levels = env.task.levels.level.clone()
    trace(env, actions(BEFORE))
    saved = load(save(env.save_state()))
    after = trace(env, actions(AFTER, 1))
    assert not torch.equal(env.task.levels.level, levels), "robots have changed their levels"
    return saved, after, env.save_state()


def test_a_fresh_environment_goes_on_bit_for_bit(halfway: Any) -> None:
    saved, after, end = halfway
    env = make_env(ROBOTS, **EVERYTHING)
    obs = env.load_state(saved)
    assert isinstance(obs, dict)
    assert all(torch.equal(x, saved[f"obs.{key}"]) for key, x in obs.items())
    assert equal(trace(env, actions(AFTER, 1)), after)
    here = env.save_state()
    assert here.keys() == end.keys() and all(torch.equal(x, end[name]) for name, x in here.items())


def test_a_used_environment_goes_on_bit_for_bit(halfway: Any) -> None:
    """One whose robots have lived through something else, and one of which is broken."""
    saved, after, _ = halfway
    env = make_env(ROBOTS, **EVERYTHING)
    env.reset(9)
    trace(env, actions(7, 3))
    assert isinstance(env.simulator, MujocoSimulator)
    env.simulator.qvel[3] = torch.nan
    env.load_state(saved)
    assert equal(trace(env, actions(AFTER, 1)), after)


def test_saving_changes_nothing_and_what_is_saved_stays(halfway: Any) -> None:
    env = make_env(ROBOTS, **EVERYTHING)
    env.reset(5)
    trace(env, actions(BEFORE))
    kept = env.keep_state()
    assert equal(trace(env, actions(AFTER, 1)), halfway[1])
    state = kept()
    assert all(torch.equal(x, state[name]) for name, x in halfway[0].items())


@pytest.mark.parametrize("lost", ["state", "clock", "generator", "simulator.qacc_warmstart", "simulator.ctrl", "physics.kp",
                                  "physics.payload", "physics.delay", "task.commands.left", "task.levels.level",
                                  "task.observation.parts.scandots.drifted", "task.observation.parts.depth.camera.until_taken"])
def test_each_part_of_the_state_is_needed(lost: str, halfway: Any) -> None:
    """The control: without one of them it goes on otherwise."""
    saved, after, _ = halfway
    assert lost in saved
    if lost == "generator":
        other = torch.Generator().manual_seed(1).get_state()
    elif lost == "state":
        other = saved[lost].clone()
        other[:, -4:] += 0.02  # the times of feet in the air
    elif saved[lost].dtype.is_floating_point:
        other = saved[lost] + 0.1
    elif lost == "task.levels.level":
        other = (saved[lost] + 1) % 4
    else:
        other = saved[lost] + (8 if lost == "clock" else 1)
    env = make_env(ROBOTS, **EVERYTHING)
    env.load_state({**saved, lost: other})
    found = trace(env, actions(AFTER, 1)[:15])
    assert not equal(found, after[:len(found)])


def test_what_does_not_fit_is_refused(halfway: Any) -> None:
    saved = halfway[0]
    with pytest.raises(EnvError, match="another simulator"):
        make_env(ROBOTS, **EVERYTHING).load_state({**saved, "physics_of": saved["physics_of"] + 1})
    with pytest.raises(EnvError, match=r"does not fit this task.*env\.count"):
        make_env(ROBOTS + 1, **EVERYTHING).load_state(saved)
    with pytest.raises(EnvError, match="other terrain"):
        make_env(ROBOTS, **{**EVERYTHING, "terrain_seed": 1}).load_state(saved)
    with pytest.raises(EnvError, match="other terrain"):
        make_env(ROBOTS, **{**EVERYTHING, "levels": 2}).load_state(saved)
    with pytest.raises(SavedError, match="state holds NaN"):
        make_env(ROBOTS, **EVERYTHING).load_state({**saved, "state": saved["state"] + torch.nan})
    with pytest.raises(SavedError, match="tile holds 99"):
        make_env(ROBOTS, **EVERYTHING).load_state({**saved, "tile": saved["tile"] * 0 + 99})
    with pytest.raises(SavedError, match=r"simulator\.qpos is missing"):
        make_env(ROBOTS, **EVERYTHING).load_state({name: x for name, x in saved.items() if name != "simulator.qpos"})


def test_other_ranges_of_randomisation_count_at_once(halfway: Any) -> None:
    def loaded(**ranges: Any) -> WalkEnv:
        env = make_env(ROBOTS, **{**EVERYTHING, "randomize": ranges, "progressive": False})
        env.load_state(halfway[0])
        return env

    physics = loaded(payload={"low": 1.0, "high": 1.5}, friction={}).simulator.physics
    assert ((physics.payload >= 1.0) & (physics.payload <= 1.5)).all()
    assert not physics.offset.any() and (physics.kp == 40.0).all(), "what is not randomised any more is as modelled"
    env = loaded()
    assert not env.simulator.physics.payload.any() and (env.simulator.physics.friction == 0.8).all()
    assert isinstance(env.simulator, MujocoSimulator)
    mass = env.simulator.batch.expand("body_mass")
    assert (mass[:, 1] == 4.713).all()
    trace(env, actions(5))


# --- a whole run -----------------------------------------------------------------------------------------------------

RUN = ("walk-rough", "total_steps=768", "env.count=8", "ppo.rollout_steps=8", "ppo.epochs=2", "ppo.minibatch_size=32",
       "env.walk.levels=3", "env.walk.resolution=0.1", "env.walk.command_seconds=0.3",
       "env.walk.endings={fallen: {}, off_tile: {}, time_out: {seconds: 0.5}}", "env.walk.randomize.pushes={seconds: 0.2}",
       "policy.memory={kind: gru, size: 16, sequence: 8}", "policy.hidden=[16]", "policy.critic_hidden=[16]",
       "checkpoint.every=128", "checkpoint.keep=100", "device=cpu", "threads=1", "report.console=off",
       "report.tensorboard=false")


class Copying(Listener):
    """Copies the run folder in the middle of a run, without any sign of an end, as a kill leaves it."""

    def __init__(self, to: Path) -> None:
        self.to = to

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        if report.iteration == 7:
            (folder,) = self.to.parent.glob("runs/*/*/")
            shutil.copytree(folder, self.to)


def test_a_run_that_was_killed_equals_the_one_that_was_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "runs"))
    killed = tmp_path / "killed"
    assert train(*RUN, listeners=[Copying(killed)]) == 0
    (whole,) = (tmp_path / "runs").glob("*/*/")
    assert not (killed / "final").exists()
    assert resume(str(killed)) == 0
    one, other = (_final(folder) for folder in (whole, killed))
    assert one.keys() == other.keys() and len(one) > 3
    assert all(content == other[name] for name, content in one.items())
    assert _metrics(whole) == _metrics(killed)


def _final(run: Path) -> dict[str, bytes]:
    (final,) = (run / "final").iterdir()
    return {path.name: path.read_bytes() for path in final.glob("*.safetensors")}


def _metrics(run: Path) -> list[dict[str, float]]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if "time" not in key and "second" not in key} for row in rows]
