"""A walk on the stage: frames and heads are what a policy does in an environment of the test's own, courses are chosen, and
its process obeys."""
from __future__ import annotations

import base64
import json
import multiprocessing as mp
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from wavedash.errors import UserError
from wavedash.loading import load_run
from wavedash.recordings import Layout, read
from wavedash.walk.env import make_ground
from wavedash.walk.evaluate.course import Course
from wavedash.walk.recording import make_course_env
from wavedash.walk.robot import HOME, JOINTS
from wavedash.web.stage.base import Out
from wavedash.web.stage.process import main
from wavedash.web.stage.protocol import receive, send_message
from wavedash.web.stage.walk import WalkStage
from wavedash.web.stage.walk_head import names_of

WALKER = Path(__file__).parents[1] / "walk" / "walker"
PATIENCE = 60


class Kept(Out):
    """Keeps what a stage says."""

    def __init__(self) -> None:
        self.game = 0
        self.messages: list[dict[str, Any]] = []
        self.records: list[bytes] = []

    def send(self, message: Any) -> None:
        self.messages.append(json.loads(json.dumps(message, allow_nan=False)))

    def frame(self, record: bytes) -> None:
        self.records.append(record)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [message for message in self.messages if message["type"] == kind]

    def values(self, name: str) -> np.ndarray:
        """[T, ...]: a field of all frames, which all have the layout of the last header."""
        layout = Layout.from_json(self.of("header")[-1]["record"])
        return layout.decode(np.frombuffer(b"".join(self.records), layout.dtype), name)


def staged(folder: Path, **asked: Any) -> tuple[WalkStage, Kept]:
    out = Kept()
    stage = WalkStage({"blue": str(WALKER), "orange": str(WALKER), "seed": 3, "folder": str(folder), **asked}, out)
    stage.begin()
    return stage, out


def upside_down(stage: WalkStage) -> None:
    env = stage.walk.env
    env.state.orientation.copy_(torch.tensor([[0.0, 1.0, 0.0, 0.0]]))
    env.simulator.place(torch.ones(1, dtype=torch.bool))


@torch.no_grad()
def test_frames_and_heads_are_those_of_the_policy(tmp_path: Path) -> None:
    """The same policy walks on the same track, step by step, without a stage."""
    stage, out = staged(tmp_path, terrain="rough", level=2)
    run = load_run(WALKER)
    env = make_course_env(run, "rough", 2, seed=1)
    obs = env.reset(3)
    policy = run.policy.policy
    stage.obey({"do": "head", "cars": [0], "observation": True})
    for frame in range(60):
        decision = out.of("head")[-1]["decision"]
        assert np.allclose(out.values("position")[frame], env.state.position[0], atol=1e-6)
        assert np.allclose(out.values("command")[frame], env.state.command[0], atol=1e-6)
        expected = policy.act(policy.normalize(obs), {}, deterministic=True)
        assert decision["value"] == pytest.approx(float(expected.value), abs=1e-5) == out.values("value")[frame]
        seen = dict(decision["observation"])
        assert seen["speed"] == pytest.approx(0.5)
        angles = (env.state.joint_position[0] - torch.tensor(HOME)).tolist()
        assert [seen[f"joint position {joint}"] for joint in JOINTS] == pytest.approx(angles, abs=1e-5)
        assert len(seen) == 46 + 2 and decision["memory"] is None
        if frame:
            rewards = dict(zip(env.task.rewards.names, env.task.rewards.table[:, 0].tolist(), strict=True))
            assert decision["rewards"] == pytest.approx(rewards, abs=1e-7)
            assert [name for name, _ in decision["outputs"]] == list(JOINTS)
            assert [value for _, value in decision["outputs"]] == pytest.approx(env.state.action[0].tolist(), abs=1e-6)
        assert stage.step() == pytest.approx(0.04)
        stage.head_sent = 0.0
        stage.obey({"do": "head", "car": 0, "observation": True})
        for _ in range(2):
            obs = env.step(run.policy.step(obs)).obs
    assert out.values("tick").tolist() == list(range(0, 122, 2))
    assert out.values("position")[-1, 0] > out.values("position")[0, 0] + 0.3, "it walks"
    heads = len(out.of("head"))
    stage.obey({"do": "head", "cars": []})
    stage.step()
    assert len(out.of("head")) == heads, "nobody looks any more"
    stage.close()
    env.close()


def test_courses_are_chosen_and_the_header_has_their_ground(tmp_path: Path) -> None:
    stage, out = staged(tmp_path)
    assert {key: stage.facts()[key] for key in ("who", "terrain", "level", "layout", "levels")} == {
        "who": {"blue": "walker", "orange": None}, "terrain": "flat", "level": 5, "layout": "track", "levels": 10}
    assert stage.facts()["terrains"][0] == "flat" and "stairs_up" in stage.facts()["terrains"]
    for terrain, level, layout in (("stairs_up", 7, "track"), ("gaps", 3, "training")):
        stage.obey({"do": "course", "terrain": terrain, "level": level, "layout": layout})
        scene = out.of("header")[-1]["scene"]
        assert (scene["terrain"], scene["level"], scene["layout"]) == (terrain, level, layout)
        walk = load_run(WALKER).config.env.walk
        walk = (Course.of(walk, [terrain]).walk if layout == "track"
                else walk.model_copy(update={"terrain": {terrain: 1.0}, "levels": 10}))
        expected = make_ground(walk).heights[level].numpy()
        heights = np.frombuffer(base64.b64decode(scene["heights"]), "<i2").reshape(scene["rows"], scene["columns"])
        assert heights.shape == expected.shape and np.abs(heights / 1000 - expected).max() <= 0.00051 and heights.std() > 10
    assert len(out.of("header")) == 3 and [message["game"] for message in out.of("header")] == [1, 2, 3]
    stage.obey({"do": "course", "terrain": "slope"})
    assert stage.facts()["level"] == 3 and stage.facts()["layout"] == "training", "what is not named stays"
    for wrong in ({"terrain": "os:system"}, {"terrain": "moon"}, {"terrain": 3}, {"level": 10}, {"level": -1}, {"level": True},
                  {"level": "3"}, {"layout": "tile"}):
        with pytest.raises(UserError):
            stage.obey({"do": "course", **wrong})
    assert stage.facts()["terrain"] == "slope" and len(out.of("header")) == 4, "a wrong choice changes nothing"
    stage.step()
    stage.close()


def test_falls_end_episodes_and_the_next_one_follows(tmp_path: Path) -> None:
    stage, out = staged(tmp_path)
    for _ in range(10):
        stage.step()
    upside_down(stage)
    assert stage.step() == pytest.approx(1.5), "the end is shown for a while"
    (event,) = out.of("event")
    assert event["event"] == {"frame": 10, "kind": "fall", "car": 0, "text": "the robot fell"}
    (end,) = out.of("end")
    assert end["result"]["text"] == "the robot fell" and end["game"] == 1
    found = read(stage.record())
    assert found.frames == 11 and found.header["events"] == [event["event"]] and found.header["source"] == "stage"
    assert found["position"][-1, 2] > 0.2, "the recording ends before the next episode begins"
    stage.step()
    assert len(out.of("header")) == 2 and out.values("tick")[-1] == 0
    stage.step()
    stage.begin()
    assert len(out.of("header")) == 3 and out.values("tick")[-1] == 0
    stage.close()


def test_in_training_robots_are_promoted(tmp_path: Path) -> None:
    shutil.copytree(WALKER, tmp_path / "climber")
    config = tmp_path / "climber" / "config.yaml"
    config.write_text(config.read_text().replace("terrain: {flat: 1.0}", "terrain: {rough: 1.0, flat: 2.0}")
                      .replace("levels: 1", "levels: 4").replace("first_level: 2", "first_level: 0"))
    stage, out = staged(tmp_path, blue=str(tmp_path / "climber"), layout="training")
    assert stage.facts()["level"] == 2 and stage.facts()["terrains"][:2] == ["rough", "flat"]
    stage.obey({"do": "course", "level": None})
    assert out.of("header")[-1]["scene"]["level"] == 0
    stage.walk.env.state.origin.sub_(100.0)  # as if it had come far
    upside_down(stage)
    stage.step()
    assert [message["event"]["kind"] for message in out.of("event")] == ["fall", "promoted"]
    stage.step()
    assert out.of("header")[-1]["scene"]["level"] == 1 and "level 1" in out.of("header")[-1]["title"]
    stage.obey({"do": "course", "level": 3})
    stage.walk.env.state.origin.sub_(100.0)
    upside_down(stage)
    stage.step()
    stage.step()
    assert out.of("header")[-1]["scene"]["level"] == 3, "a level that was chosen stays"
    stage.close()


@pytest.mark.parametrize("command", [
    {"do": "drive", "car": 0}, {"do": "place"}, {"do": "controls"}, {"do": "fly"}, {"do": "head", "car": 1},
    {"do": "head", "cars": [0, True]},
])
def test_what_a_robot_cannot_do_is_refused(command: dict[str, Any], tmp_path: Path) -> None:
    stage, _ = staged(tmp_path)
    with pytest.raises(UserError):
        stage.obey(command)
    stage.step()
    stage.close()


def test_a_policy_of_another_kind_is_refused() -> None:
    with pytest.raises(UserError, match="not in a walking task"):
        WalkStage({"blue": "champion"}, Kept())


def test_observations_have_names_and_memory_is_told(tmp_path: Path) -> None:
    """A recurrent policy with scandots, as it is before training."""
    from wavedash.assembly import assembled
    from wavedash.config_file import load_config
    from wavedash.runs.policy_folder import PolicyFolder

    config = load_config("walk-rough", ["env.count=2", "env.walk.terrain={rough: 1}", "env.walk.levels=2", "device=cpu",
                                        "policy.memory.size=8", "ppo.minibatch_size=48", "policy.critic_hidden=[16]"])
    with assembled(config) as learner:
        state = {"steps": 0, "fingerprint": learner.fingerprint()}
        PolicyFolder.write(tmp_path / "new", config, learner.policy.state_dict(), state)
    stage, out = staged(tmp_path, blue=str(tmp_path / "new"))
    stage.step()
    stage.head_sent = 0.0
    stage.obey({"do": "head", "cars": [0], "observation": True})
    decision = out.of("head")[-1]["decision"]
    sizes = {key: part.space().shape[0] for key, part in stage.walk.env.task.observation.parts.items()}
    assert len(decision["observation"]) == sum(sizes.values())
    assert "scandots" in Layout.from_json(out.of("header")[-1]["record"]).by_name
    names = [name for name, _ in decision["observation"]]
    assert len(set(names)) == len(names) and "privileged 3" in names
    assert any(name.startswith("heights at 0.9, ") for name in names)
    flat = [x for memory in decision["memory"].values() for x in memory]
    assert len(flat) >= 8 and any(flat), "the memory has changed"
    part = stage.walk.env.task.observation.parts["scandots"]
    assert names_of("scandots", part, 2) == ["scandots 0", "scandots 1"], "a description that does not fit is not used"
    stage.close()


@pytest.mark.slow
def test_a_real_walk_in_its_process(tmp_path: Path) -> None:
    context = mp.get_context("spawn")
    here, there = context.Pipe()
    asked = {"blue": str(WALKER), "orange": str(WALKER), "folder": str(tmp_path)}
    process = context.Process(target=main, args=(there, json.dumps(asked)))
    process.start()
    there.close()

    def until(kind: str, **content: Any) -> Any:
        while here.poll(PATIENCE):
            message = receive(here)
            if isinstance(message, bytes):
                if kind == "frame":
                    return message
            elif message["type"] == kind and content.items() <= message.items():
                return message
        raise AssertionError(f"no {kind} came")

    assert until("header")["kind"] == "walk"
    until("frame")
    assert until("status", state="playing")["terrains"]
    send_message(here, {"do": "course", "terrain": "stairs_up", "level": 1})
    assert until("header")["scene"]["terrain"] == "stairs_up"
    assert until("status", terrain="stairs_up", level=1)
    send_message(here, {"do": "course", "terrain": "../../etc"})
    assert "choose one of" in until("refused", what="course")["why"]
    send_message(here, {"do": "record"})
    assert read(tmp_path / until("recorded")["file"]).header["scene"]["terrain"] == "stairs_up"
    send_message(here, {"do": "restart"})
    assert until("header")["game"] == 3
    here.close()
    process.join(PATIENCE)
    assert process.exitcode == 0
