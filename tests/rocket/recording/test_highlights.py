"""Highlights of a training are kept, whatever plays in its arenas, without any effect on it; a crash leaves recordings."""
from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.rocket.recording.games import episode_of, nothing
from wavedash.assembly import assembled
from wavedash.config import RecordingsConfig
from wavedash.config_file import load_config
from wavedash.envs.errors import EnvError
from wavedash.ppo.learner import Learner
from wavedash.recordings import Recording, read
from wavedash.rocket.parts import Reward
from wavedash.rocket.recording import crash, highlights
from wavedash.rocket.recording.highlights import Highlights
from wavedash.rocket.recording.watched import watch
from wavedash.runs.folder import RunFolder
from wavedash.runs.interrupt import SaveNow
from wavedash.training import resume, train

HERE = "tests.rocket.recording.test_highlights"
SMALL = ("env.count=8", "env.groups=2", "policy.hidden=[16]", "ppo.rollout_steps=16", "ppo.epochs=1", "ppo.minibatch_size=128",
         "report.console=off", "report.tensorboard=false", "device=cpu", "rating=null", "total_steps=2500")
SHOTS = ("env.rocket.starts={'tests.rocket.recording.games:Tap': 1}", "env.rocket.rewards={goal: 1}",
         "env.rocket.endings={goal: {}, time_out: {seconds: 2.5}}")


def recordings(run: Path, folder: str = "recordings") -> dict[str, Recording]:
    return {path.name: read(path) for path in sorted((run / folder).glob("*.wdr"))}


def trained(root: Path, *overrides: str, preset: str = "rocket-1v1") -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAVEDASH_RUNS", str(root))
        assert train(preset, *SMALL, *SHOTS, *overrides, trust=True) == 0
    (run,) = root.glob("*/*")
    return run


def contents(run: Path) -> dict[str, bytes]:
    (final,) = (run / "final").iterdir()
    return {file.name: file.read_bytes() for file in final.glob("*.safetensors")}


# --- no effect -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("overrides", [
    (),
    ("opponents={share: 0.5, slots: 2}", "policy.memory.kind=gru", "policy.memory.sequence=8"),
    ("env.rocket.simulator=rocketsim", "env.workers=2"),
    ("env.rocket.measures=[turtle]", "env.rocket.lanes={up: {share: 0.25, starts: {turtle: 1}, rewards: {recovery: 1}, "
     "endings: {time_out: {seconds: 1}}, measures: [dribble]}}"),
    ("env.rocket.sizes={1v1: 1, 2v2: 1}", "env.rocket.observation={advanced_obs_plus: {team_size: 2}}"),
], ids=["warp", "opponents and memory", "rocketsim workers", "lanes and measures", "sizes"])
def test_the_training_is_the_same_bit_for_bit(overrides, tmp_path):
    if "rocketsim" in str(overrides):
        pytest.importorskip("RocketSim")
    plain = trained(tmp_path / "plain", *overrides, "recordings=null")
    watched = trained(tmp_path / "watched", *overrides, "recordings={watched: 6}")
    assert contents(watched) == contents(plain) and len(contents(plain)) >= 4
    assert not (plain / "recordings").exists()
    files = recordings(watched)
    goals = [file for name, file in files.items() if "-goal-" in name]
    assert goals and not (watched / "crash").exists()
    if "turtle" in str(overrides):
        assert [name for name in files if "-turtle-" in name], "a success in a lane or in the main task"
    for name, file in files.items():
        step, _, score = name.removesuffix(".wdr").split("-")
        assert file.header["source"] == "highlight" and file.header["step"] == int(step) < 3000 and int(score) > 0
        assert file.header["run"] == f"{watched.parent.name}/{watched.name}" and file.seconds <= 21
        assert file.header["scene"]["size"] in ("1v1", "2v2") and len(file.header["players"]) in (2, 4)
        assert set(np.diff(file["tick"])[:-1]) <= {8} and file["tick"][0] == 0, "of one episode, here from its beginning"
    for file in goals:
        speed = np.linalg.norm(file["ball.velocity"][-1]) * 0.036
        assert f"a goal at {round(speed)} km/h" in file.header["title"] and sum(file.header["score"]) == 1
        assert "goal" in [event["kind"] for event in file.header["events"]]
    names = {player["name"].partition("@")[0] for file in files.values() for player in file.header["players"]}
    assert names <= {"rocket-1v1", "opponent"}
    log = (watched / "log.txt").read_text(encoding="utf-8")
    assert "highlight" not in log, "nothing went wrong"


@pytest.mark.slow
def test_a_run_that_is_resumed_goes_on_exactly_and_with_its_shelf(tmp_path):
    """Highlights are no state of a checkpoint: those of before are known from their files."""
    whole = trained(tmp_path / "whole")
    half = trained(tmp_path / "parts", "total_steps=1200")
    before = recordings(half)
    assert resume(str(half), "total_steps=2500") == 0
    newest = max((half / "final").iterdir())
    for name, content in contents(whole).items():
        assert (newest / name).read_bytes() == content, name
    after = recordings(half)
    assert before and max(int(name.split("-")[0]) for name in before) <= 1280 < max(int(name.split("-")[0]) for name in after)
    goals = sorted(int(name.removesuffix(".wdr").split("-")[2]) for name in after if "-goal-" in name)
    known = sorted(int(name.removesuffix(".wdr").split("-")[2]) for name in before if "-goal-" in name)
    assert len(goals) == 20 // 3 and goals[-1] >= known[-1] and goals[0] >= known[0] * (len(known) == len(goals))


# --- what is watched -------------------------------------------------------------------------------------------------


@pytest.fixture
def learner(tmp_path: Path) -> Iterator[Learner]:
    with assembled(load_config("rocket-1v1", [*SMALL, *SHOTS])) as made:
        yield made


def watching(learner: Learner, folder: Path, **options: int) -> Highlights:
    folder.mkdir(exist_ok=True)
    listener = Highlights(RecordingsConfig(**options), RunFolder(folder))
    learner.listeners.add(listener)
    return listener


def test_arenas_are_spread_over_sizes_lanes_and_opponents():
    sizes = "env.rocket.sizes={1v1: 2, 2v2: 1, 3v3: 1}"
    observation = "env.rocket.observation={advanced_obs_plus: {team_size: 3}}"
    with assembled(load_config("rocket-1v1", [*SMALL, "env.count=64", sizes, observation])) as made:
        found = watch(made.env, 4, 16, "warp")
        assert [one.scene["size"] for one in found] == ["1v1", "2v2", "3v3"]
        assert [len(one.tape.arenas) for one in found] == [2, 1, 1]
        for one in found:
            assert all(0 <= arena < one.state.arenas for arena in one.tape.arenas)
            numbers = [one.first + arena for arena in one.tape.arenas]
            assert all(torch.equal(made.env.state_of(number).memory[0], one.state.memory[arena])  # type: ignore[attr-defined]
                       for number, arena in zip(numbers, one.tape.arenas, strict=True))
        few = watch(made.env, 1, 16, "warp")
        assert [len(one.tape.arenas) for one in few] == [1]
    with assembled(load_config("rocket-1v1", [*SMALL, "env.groups=1", "env.count=40"])) as made:
        (one,) = watch(made.env, 4, 16, "warp")
        assert one.tape.arenas == [5, 15, 25, 35], "lanes have the first arenas, opponents the last"
        assert one.tape._slice is not None, "no row is copied twice"
        (one,) = watch(made.env, 100, 16, "warp")
        assert one.tape.arenas == list(range(40))


def test_opponents_are_called_so(learner, tmp_path):
    listener = watching(learner, tmp_path / "run")
    listener.on_start(learner)
    episode = episode_of(nothing(3))
    episode.policy[1] = False
    recording = listener.watched[0].recording(episode, "me@5", "a title", "highlight")
    assert [player["name"] for player in recording.header["players"]] == ["me@5", "opponent"]


def test_a_disk_that_fails_is_said_once_and_ends_nothing(learner, tmp_path, caplog):
    """A file is where the folder should be."""
    watching(learner, tmp_path / "run")
    (tmp_path / "run" / "recordings").write_text("in the way")
    with caplog.at_level(logging.WARNING):
        learner.learn()
    said = [record.message for record in caplog.records if "highlight" in record.message]
    assert len(said) == 1 and "could not keep a highlight" in said[0] and learner.steps >= learner.total_steps
    assert (tmp_path / "run" / "recordings").read_text() == "in the way"


def test_a_mistake_here_ends_highlights_and_not_the_run(learner, tmp_path, caplog, monkeypatch):
    calls = []

    def broken(*args: Any) -> None:
        calls.append(args)
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr(highlights, "find_moments", broken)
    watching(learner, tmp_path / "run")
    learner.learn()
    assert len(calls) == 1 and learner.steps >= learner.total_steps
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [
        "no more highlights are kept of this run: ZeroDivisionError: a mistake"]


@pytest.mark.slow
def test_other_environments_have_no_highlights_and_say_so(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    assert train("cartpole", "recordings={}", "total_steps=200", "report.console=off", "ppo.rollout_steps=16") == 0
    (log,) = tmp_path.glob("*/*/log.txt")
    assert log.read_text(encoding="utf-8").count("has no highlights; this run keeps none") == 1
    assert not list(tmp_path.glob("*/*/recordings"))


# --- crashes ---------------------------------------------------------------------------------------------------------


KICKOFF = ("env.rocket.starts={kickoff: 1, random: 0}", "env.rocket.endings={time_out: {seconds: 30}}",
           "ppo.normalize_reward=false")
"""Nothing ends within seconds"""


class Fails(Reward):
    """Pays NaN, or raises an exception, in one arena at one tick."""

    def __init__(self, arena: int = 2, tick: int = 160, raises: bool = False) -> None:
        self.arena, self.tick, self.raises = arena, tick, raises

    def __call__(self, state: Any, previous: Any, events: Any) -> Tensor:
        paid = torch.zeros_like(state.cars.boost)
        if self.arena < len(paid) and int(state.game.tick[self.arena]) == self.tick:
            if self.raises:
                raise RuntimeError("the simulator lost its mind")
            paid[self.arena, 0] = torch.nan
        return paid


def failing(**options: Any) -> str:
    given = ", ".join(f"{name}: {str(value).lower()}" for name, value in options.items())
    return f"env.rocket.rewards={{mine: {{reward: '{HERE}:Fails', weight: 1, {given}}}}}"


@pytest.mark.parametrize(("watched", "frames"), [(8, 20), (1, 1)], ids=["watched", "not watched"])
def test_a_run_that_fails_leaves_what_its_arenas_did(watched, frames, tmp_path, monkeypatch):
    """The arena that the error names comes first: its last seconds if it is watched, else its last state."""
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    with pytest.raises(EnvError, match=r"reward 'mine' paid nan to the car in seat 0 .* of arena 2"):
        train("rocket-1v1", *SMALL, *KICKOFF, failing(arena=2), "env.groups=1", f"recordings={{watched: {watched}}}",
              trust=True)
    (run,) = tmp_path.glob("*/*")
    files = recordings(run, "crash")
    assert len(files) == (8 if watched == 8 else 2)
    (name, first), *others = files.items()
    assert name.endswith("-crash-01-arena-2.wdr") and first.frames >= frames
    for file in files.values():
        assert file.header["source"] == "crash" and file.header["title"].startswith("arena ")
        last = file.header["events"][-1]
        assert last["kind"] == "end" and "EnvError: reward 'mine' paid nan" in last["text"]
    if watched == 8:
        assert 160 in first["tick"] and all(file.frames == first.frames for _, file in others)


@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
def test_a_step_that_fails_leaves_the_steps_before_it(simulator, tmp_path, monkeypatch, caplog):
    """The error itself is what the caller gets. Nothing of the crash keeps the run from being resumed."""
    if simulator == "rocketsim":
        pytest.importorskip("RocketSim")
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    with pytest.raises(RuntimeError, match="the simulator lost its mind"):
        train("rocket-1v1", *SMALL, *KICKOFF, failing(arena=0, tick=168, raises=True), f"env.rocket.simulator={simulator}",
              trust=True)
    (run,) = tmp_path.glob("*/*")
    files = recordings(run, "crash")
    assert len(files) == 4 and all(file["tick"][-1] == 160 for file in files.values()), "the step that failed is not there"
    assert all("RuntimeError: the simulator lost its mind" in file.header["events"][-1]["text"] for file in files.values())
    assert (run / "checkpoints").exists() and any((run / "checkpoints").iterdir())


def test_what_goes_wrong_while_a_crash_is_recorded_hides_nothing(learner, tmp_path, caplog, monkeypatch):
    listener = watching(learner, tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    monkeypatch.setattr(learner, "iterate", lambda: (_ for _ in ()).throw(EnvError("the true cause in arena 99999999")))
    with pytest.raises(EnvError, match="the true cause"):
        learner.learn()
    assert "could not record what arenas did" in caplog.text and listener.watched == []


def test_who_is_stopped_has_not_crashed(learner, tmp_path):
    for number, error in enumerate((None, SaveNow(), KeyboardInterrupt(), EnvError("a fault"))):
        listener = watching(learner, tmp_path / "run", watched=number + 1)
        listener.on_start(learner)
        learner.start()
        learner.iterate()
        listener.on_stop(learner, error)
        assert len(recordings(tmp_path / "run", "crash")) == (4 if isinstance(error, EnvError) else 0), error


def test_old_crashes_give_way_to_new_ones(learner, tmp_path, monkeypatch):
    monkeypatch.setattr(crash, "MOST_FILES", 6)
    (tmp_path / "run" / "crash").mkdir(parents=True)
    (tmp_path / "run" / "crash" / "skipped-000000000001.safetensors").write_bytes(b"data of an update")
    for _ in range(3):
        listener = watching(learner, tmp_path / "run")
        listener.on_start(learner)
        learner.start()
        learner.iterate()
        listener.on_stop(learner, EnvError("a fault"))
    names = [path.name for path in (tmp_path / "run" / "crash").iterdir()]
    assert len(names) == 7 and "skipped-000000000001.safetensors" in names
    assert sum(f"{learner.steps:012d}" in name for name in names) == 4
