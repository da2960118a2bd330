"""Milestones: what is written and when, that kills and bad disks neither lose nor repeat one, and how they are found."""
from __future__ import annotations

import builtins
import hashlib
import itertools
import json
import os
import random
import shlex
import shutil
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
import torch

from tests.runs.stand_in import StandInLearner, forked, make_run
from wavedash.cli.app import app
from wavedash.config import MilestonesConfig, RunConfig
from wavedash.config_file import load_config
from wavedash.errors import UserError
from wavedash.import_path import is_run_folder
from wavedash.ppo.listener import Listener
from wavedash.runs.ask import running
from wavedash.runs.checkpoint import Checkpoint, CheckpointError
from wavedash.runs.find import Fork, Found, find_run, resolve_checkpoint, resolve_policy, run_with_milestones
from wavedash.runs.folder import RunError, RunFolder
from wavedash.runs.milestones import FACTS, MilestoneError, MilestoneStore, name_of, read_steps
from wavedash.runs.saver import Saver
from wavedash.runs.trust import UntrustedError, run_config

WEIGHT = "actor.weight"


@pytest.fixture(autouse=True)
def runs_here(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))


class Weights(Listener):
    """It keeps the weights after every iteration."""

    def __init__(self) -> None:
        self.at: dict[int, torch.Tensor] = {}

    def on_iteration(self, learner, report):
        self.at[report.steps] = learner.model["actor"].weight.detach().clone()


def learner_for(run: RunFolder, config: RunConfig, every: int, *listeners: Listener, **kwargs) -> StandInLearner:
    saver = Saver(run, config.checkpoint, MilestonesConfig(every=every))
    return StandInLearner([*listeners, saver], total_steps=config.total_steps, **kwargs)


def milestones(run: RunFolder) -> dict[str, int]:
    """The steps of each, by name, all of them whole."""
    listed, broken = run.milestones.listed()
    assert broken == []
    for one in listed:
        one.checkpoint.verify()
    return {one.name: one.checkpoint.step for one in sorted(listed, key=lambda one: one.checkpoint.step)}


def stop_from(steps: int, learner: StandInLearner) -> None:
    if learner.steps >= steps:
        learner.stop("test")


def content(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


# --- names -----------------------------------------------------------------------------------------------------------


def test_every_number_of_steps_has_a_name_that_reads_back():
    chance = random.Random(0)
    for steps in [1, 999, 10_000, 123_456_789_012, *(chance.randrange(10**chance.randrange(1, 13)) * 10**chance.randrange(8)
                                                   for _ in range(500))]:
        assert read_steps(name_of(steps)) == steps
    assert [name_of(steps) for steps in (40_000_000, 1_500_000_000, 500_000, 10_000, 4096)] == [
        "40M", "1500M", "0.5M", "0.01M", "4096"]


def test_what_users_type_is_read():
    for text, steps in {"40M": 40_000_000, "40m": 40_000_000, "1.5B": 1_500_000_000, "500k": 500_000, " 12 ": 12,
                        "40,000,000": 40_000_000, "40_000_000": 40_000_000, "0.0000015B": 1500}.items():
        assert read_steps(text) == steps
    for text in ("", "M", "40G", "-40M", "1.5", "forty", "40M.2", "1e6", "0.0001k", "nan"):
        assert read_steps(text) is None


# --- what is written -------------------------------------------------------------------------------------------------


def test_a_milestone_is_the_whole_state_at_its_step_and_outlives_other_checkpoints(tmp_path):
    run, config = make_run(tmp_path, every=10, keep=1, total_steps=120)
    watch = Weights()
    learner = learner_for(run, config, 30, watch, steps_per_iteration=8)
    learner.learn()
    assert milestones(run) == {"30": 32, "60": 64, "90": 96, "120": 120}
    assert len(list((run.path / "checkpoints").iterdir())) == 1
    for one in run.milestones.listed()[0]:
        tensors, state = one.checkpoint.load()
        assert torch.equal(tensors["policy"][WEIGHT], watch.at[one.checkpoint.step])
        assert state["steps"] == one.checkpoint.step
        again = StandInLearner([], total_steps=120, steps_per_iteration=8)
        again.load_state(tensors, state)
        again.learn()
        assert torch.equal(again.weights(), learner.weights()), "the run goes on from it bit for bit"


def test_none_is_written_unless_it_is_asked_for(tmp_path):
    run, config = make_run(tmp_path)
    assert config.milestones is None
    StandInLearner([Saver(run, config.checkpoint)]).learn()
    assert not (run.path / "milestones").exists()
    assert Saver(run, config.checkpoint).state_dict() == {}


def test_one_iteration_that_passes_several_gives_one(tmp_path):
    run, config = make_run(tmp_path, total_steps=60)
    learner_for(run, config, 5, steps_per_iteration=20).learn()
    assert milestones(run) == {"20": 20, "40": 40, "60": 60}


class Told(Listener):
    """It reports made-up metrics of some iterations, and hands on all of them."""

    def __init__(self, saver: Saver, metrics: dict[int, dict[str, float]]) -> None:
        self.saver, self.metrics = saver, metrics

    def on_start(self, learner):
        self.saver.on_start(learner)

    def on_iteration(self, learner, report):
        self.saver.on_iteration(learner, report.with_metrics(self.metrics.get(report.iteration, {})))

    def on_stop(self, learner, error):
        self.saver.on_stop(learner, error)


def test_its_json_says_what_it_is_worth(tmp_path):
    run, config = make_run(tmp_path, total_steps=60)
    rated = {"rating/elo": 1200.5, "rating/low": 1100.0, "rating/high": 1300.0}
    metrics = {3: {"rollout/reward": 0.25, "recent/return": 7.5, "policy/entropy": 3.5, "policy/kl": 0.01}, 4: rated,
               6: {"rollout/reward": float("nan")}}
    saver = Saver(run, config.checkpoint, MilestonesConfig(every=30))
    StandInLearner([Told(saver, metrics)], total_steps=60).learn()
    first, second = (json.loads((run.path / "milestones" / name / FACTS).read_text()) for name in ("30", "60"))
    assert {**first, "time": None} == {"milestone": "30", "phase": None, "steps": 30, "time": None, "iteration": 3,
                                       "mean_reward": 0.25, "mean_return": 7.5, "entropy": 3.5, "kl": 0.01, "rating": None}
    assert second["rating"] == {"elo": 1200.5, "low": 1100.0, "high": 1300.0, "steps": 40}, "the last one that was known"
    assert (second["mean_reward"], second["kl"]) == (None, None)
    assert first["time"].endswith("Z") and first["time"] <= second["time"]
    assert [one.facts() for one in run.milestones.listed()[0]] == [second, first]
    resumed = Saver(run, config.checkpoint, MilestonesConfig(every=30))
    resumed.load_state_dict(saver.state_dict())
    StandInLearner([Told(resumed, {})], total_steps=90).learn()
    assert run.milestones.listed()[0][0].facts()["rating"] == second["rating"], "also after a resume"


def test_it_keeps_the_settings_of_its_time(tmp_path):
    run, config = make_run(tmp_path, total_steps=40)
    learner_for(run, config, 20).learn()
    run.record_start(config.model_copy(update={"total_steps": 4000}))
    for path in (run.path / "milestones" / "20", tmp_path / "elsewhere" / "copy"):
        if not path.exists():
            shutil.copytree(run.path / "milestones" / "20", path)
        assert load_config(str(Checkpoint.open(path).run_config)).total_steps == 40, "also without its run"
    assert load_config(str(resolve_checkpoint(run.path / "checkpoints").run_config)).total_steps == 4000
    (run.path / "milestones" / "20" / "config.yaml").write_text("seed: 1")
    with pytest.raises(CheckpointError, match=r"config\.yaml is damaged"):
        run.milestones.find("20")


def test_code_that_it_names_is_its_users_and_nobody_elses(tmp_path):
    run, config = make_run(tmp_path, total_steps=20)
    config = config.model_copy(update={"env": config.env.model_copy(update={"id": None, "factory": "evil:make"})})
    run.record_start(config)
    learner_for(run, config, 20).learn()
    folder = run.path / "milestones" / "20"
    assert run_config(folder / "config.yaml").env.factory == "evil:make"
    assert is_run_folder(folder), "a file in it is no file of the user's own"
    (folder / "signature.json").unlink()
    with pytest.raises(UntrustedError, match="evil:make"):
        run_config(folder / "config.yaml")


# --- by order --------------------------------------------------------------------------------------------------------


class Orders(Listener):
    """It gives the saver orders after some iterations, as `wavedash set` does, and keeps what it says."""

    def __init__(self, saver: Saver, orders: dict[int, list[str | None]]) -> None:
        self.saver, self.labels = saver, orders
        self.said: list[str] = []

    def on_iteration(self, learner, report):
        for label in self.labels.get(report.iteration, []):
            try:
                self.said.append(self.saver.obey(learner, "milestone", label))
            except UserError as error:
                self.said.append(str(error))


def ordered(run: RunFolder, config: RunConfig, orders: dict[int, list[str | None]], every: int | None = None,
            **kwargs) -> Orders:
    saver = Saver(run, config.checkpoint, None if every is None else MilestonesConfig(every=every))
    ordering = Orders(saver, orders)
    StandInLearner([saver, ordering], total_steps=config.total_steps, **kwargs).learn()
    return ordering


def test_a_user_orders_one_in_a_run_that_writes_none_by_itself(tmp_path):
    run, config = make_run(tmp_path, every=1000, total_steps=4_000_000)
    ordered(run, config, {1: [None], 2: ["first-goals"], 3: ["Twice", "Twice"], 4: [None, None]}, steps_per_iteration=800_400)
    assert milestones(run) == {"800400": 800_400, "1.6M-first-goals": 1_600_800, "2.4M-Twice": 2_401_200,
                               "2.4M-Twice.2": 2_401_200, "3.2M": 3_201_600}, "without a label, one of a step is enough"
    for name in ("first-goals", "FIRST-GOALS", "1.6M", "1600k", "1600800", "1.6m-first-goals"):
        found = run.milestones.find(name)
        assert found.path.name == "1.6M-first-goals"
        assert found.load()[1]["steps"] == 1_600_800 and load_config(str(found.run_config)) == config
        for path in (f"{run.path}@{name}", run.path / "milestones" / name):
            assert resolve_checkpoint(path).path == found.path
            assert isinstance(find_run(path), Fork)
    assert run.milestones.find("twice").path.name == "2.4M-Twice.2", "the last one of that label"
    with pytest.raises(MilestoneError, match="'goals' names no milestone of"):
        resolve_checkpoint(f"{run.path}@goals")


def test_one_by_order_is_beside_the_regular_ones_and_in_the_folder_of_its_phase(tmp_path):
    run, config = make_run(tmp_path, every=1000, total_steps=80)
    saver = Saver(run, config.checkpoint, MilestonesConfig(every=30))
    learner = StandInLearner([saver, Orders(saver, {3: [None], 5: [None], 6: ["x"]})], total_steps=80)

    def move_on(learner: StandInLearner) -> None:
        learner.phase = "Phase2-Bronze Skills" if learner.steps > 40 else "Phase1-BallTouching"

    learner.during = move_on
    learner.learn()
    listed, _ = run.milestones.listed()
    assert [one.full_name for one in reversed(listed)] == ["Phase1-BallTouching/30", "Phase2-Bronze Skills/50",
                                                           "Phase2-Bronze Skills/60", "Phase2-Bronze Skills/60-x"]
    assert listed[0].facts()["phase"] == "Phase2-Bronze Skills" and run.milestones.find("Phase2-Bronze Skills/60-x")
    again = StandInLearner([Saver(run, config.checkpoint, MilestonesConfig(every=30))], total_steps=80)
    again.load_state(*run.milestones.find("50").load())
    again.learn()
    assert torch.equal(again.weights(), learner.weights()), "a run goes on from one bit for bit"


@pytest.mark.parametrize("killed", [False, True])
def test_a_save_reads_no_other_milestones_however_many_there_are(tmp_path, monkeypatch, killed):
    """A process reads each once, to save later than all of them even where the clock was set back. After a kill it reads those
    that it repeats, too."""
    run, config = make_run(tmp_path, every=20, total_steps=300)
    learner_for(run, config, 10).learn()
    before = run.milestones.listed()[0]
    if killed:
        for lost in ("final", "checkpoints/step-000000000280", "checkpoints/step-000000000300"):
            shutil.rmtree(run.path / lost)
    saver = Saver(run, config.checkpoint, MilestonesConfig(every=10))
    again = StandInLearner([saver, Orders(saver, {33: [None, "x"], 35: ["y"]})], total_steps=400)
    again.load_state(*run.newest().load())
    opened, really = Counter[str](), builtins.open

    def open_and_count(file, *args, **kwargs):
        opened[str(file)] += 1
        return really(file, *args, **kwargs)

    monkeypatch.setattr(builtins, "open", open_and_count)
    monkeypatch.setattr("time.time_ns", lambda: 0)
    again.learn()
    monkeypatch.undo()
    reads = {one.name: opened[str(one.checkpoint.path / "manifest.json")] for one in before}
    assert reads == {name_of(step): 2 if killed and step > 260 else 1 for step in range(10, 301, 10)}
    after = [one.name for one in reversed(run.milestones.listed()[0])]
    assert after[30:] == ["310", "320", "330", "330-x", "340", "350", "350-y", "360", "370", "380", "390", "400"]


@pytest.mark.parametrize("label", ["", "40M", "a/b", "..", "a.2", "ä", "a b", "a" * 61, "-x"])
def test_what_cannot_name_a_folder_is_refused(tmp_path, label):
    run, config = make_run(tmp_path, total_steps=20)
    (said,) = ordered(run, config, {1: [label]}).said
    assert said.startswith(f"{label!r} cannot name a milestone: use up to 60 letters") and milestones(run) == {}


def test_an_order_that_cannot_be_written_is_refused_and_counted(tmp_path):
    run, config = make_run(tmp_path, every=1000, total_steps=40)
    (run.path / "milestones").write_text("in the way")
    orders = ordered(run, config, {2: ["now"]})
    assert "step 20 was not saved into" in orders.said[0] and orders.saver.health == {"failed_saves": 1}
    assert run.store("checkpoints").latest().step == 40, "the run goes on"


# --- kills and bad disks ---------------------------------------------------------------------------------------------


def trained_to_the_end(folder: Path, config: RunConfig) -> None:
    """Goes on with the run, wherever it is."""
    run = RunFolder(folder)
    learner = learner_for(run, config, 20)
    if newest := run.newest():
        learner.load_state(*newest.load())
    learner.learn()


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_dying_at_any_system_call_neither_misses_a_milestone_nor_repeats_one(tmp_path, when):
    """The process dies at a call that changes the disk, and the run is resumed: it has what a run has that never died."""
    whole, config = make_run(tmp_path / "whole", total_steps=40, every=20, keep=1)
    trained_to_the_end(whole.path, config)
    expected = {one.name: one.checkpoint.load()[0]["policy"][WEIGHT] for one in whole.milestones.listed()[0]}
    assert sorted(expected) == ["20", "40"]

    def dies(folder: Path, fatal: int, tell) -> None:
        calls = itertools.count(1)

        def mortal(call):
            def dying(*args, **kwargs):
                number = next(calls)
                if number == fatal and when == "before":
                    os._exit(7)
                try:
                    return call(*args, **kwargs)
                finally:
                    if number == fatal:
                        os._exit(7)
            return dying

        builtins.open = mortal(open)
        for name in ("mkdir", "rename", "unlink", "rmdir"):
            setattr(os, name, mortal(getattr(os, name)))
        trained_to_the_end(folder, config)

    repeated = 0
    for fatal in itertools.count(1 if when == "before" else 3, 4):
        run = RunFolder.create("toy", tmp_path / str(fatal))
        with forked(partial(dies, run.path, fatal)) as child:
            code = child.wait()
        before = content(run.path / "milestones")
        written, saved = run.milestones.latest(), run.store("checkpoints").latest()
        repeated += written is not None and (saved is None or saved.step < written.step)
        trained_to_the_end(run.path, config)
        assert sorted(milestones(run)) == ["20", "40"]
        for one in run.milestones.listed()[0]:
            assert torch.equal(one.checkpoint.load()[0]["policy"][WEIGHT], expected[one.name])
        assert list(run.path.rglob(".tmp*")) == []
        kept = {name: sha for name, sha in before.items() if not name.startswith(".tmp")}
        assert kept.items() <= content(run.path / "milestones").items(), "what was written stays as it was"
        if code == 0:
            break
        assert code == 7
    assert fatal > 50 and repeated > 3  # some deaths must have left a milestone without the checkpoint after it


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("legs", [((10, 60),), ((10, 20), (20, 40), (40, 60))])  # the second goes on with the newest one
def test_a_run_that_went_back_keeps_both_versions(tmp_path, legs, killed):
    """It goes back in its own folder to an earlier checkpoint, and comes by the milestone once more, at once or after it was
    stopped again. If it had been killed, nothing but the milestone is newer than the checkpoints."""
    run, config = make_run(tmp_path, every=10, keep=100, total_steps=60)
    learner_for(run, config, 40).learn()
    before = content(run.path / "milestones" / "40")
    for steps in (40, 50, 60) if killed else ():
        shutil.rmtree(run.path / "checkpoints" / f"step-{steps:012d}")
    for start, stop in legs:
        again = learner_for(run, config, 40)
        again.load_state(*Checkpoint.open(max(run.path.glob(f"checkpoints/step-{start:012d}*"))).load())
        if start == 10:
            with torch.no_grad():
                again.model["actor"].weight.mul_(2.0)
        again.during = partial(stop_from, stop)
        again.learn()
    assert milestones(run) == {"40": 40, "40.2": 40}
    assert content(run.path / "milestones" / "40") == before
    one, two = (run.milestones.find(name).load()[0]["policy"][WEIGHT] for name in ("40", "40.2"))
    assert not torch.equal(one, two)


def test_a_bad_disk_is_counted_and_tried_again_under_the_same_name(tmp_path, caplog):
    run, config = make_run(tmp_path, every=1000, total_steps=300)
    (run.path / "milestones").write_text("in the way")  # every save fails, for real
    learner = learner_for(run, config, 100, steps_per_iteration=1)
    learner.during = lambda learner: (run.path / "milestones").unlink() if learner.steps == 125 else None
    learner.learn()
    assert learner.listeners[0].health == {"failed_saves": 3}  # at 100, 110 and 120; at 130 it worked
    assert milestones(run) == {"100": 130, "200": 200, "300": 300}
    assert "step 100 was not saved into" in caplog.text


def test_a_milestone_that_could_not_be_written_is_written_after_a_resume(tmp_path):
    run, config = make_run(tmp_path, total_steps=100)
    (run.path / "milestones").write_text("in the way")
    first = learner_for(run, config, 40)
    first.during = partial(stop_from, 60)
    first.learn()
    saver = first.listeners[0]
    assert saver.state_dict() == {"missing_since": 0}
    (run.path / "milestones").unlink()
    again = learner_for(run, config, 40)
    again.load_state(*run.newest().load())
    again.listeners[0].load_state_dict(saver.state_dict())
    again.learn()
    assert milestones(run) == {"40": 70, "80": 80}
    assert again.listeners[0].state_dict() == {}
    assert run.milestones.find("40").load()[1]["steps"] == 70


def test_a_milestone_is_tried_once_more_when_the_run_ends(tmp_path):
    run, config = make_run(tmp_path, every=1000, total_steps=100)
    (run.path / "milestones").write_text("in the way")
    learner = learner_for(run, config, 100)

    class Mends(Listener):
        def on_iteration(self, learner, report):
            if report.steps == 100:
                (run.path / "milestones").unlink()

    learner.listeners.append(Mends())
    learner.learn()
    assert milestones(run) == {"100": 100}


def test_a_damaged_one_is_named_and_saved_again_if_the_run_comes_by(tmp_path, caplog):
    run, config = make_run(tmp_path, every=30, total_steps=50)
    learner_for(run, config, 40).learn()
    shutil.rmtree(run.path / "final")
    shutil.rmtree(run.path / "checkpoints" / "step-000000000050")  # as if it had been killed before that one
    weights = run.path / "milestones" / "40" / "policy.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"policy\.safetensors is damaged"):
        run.milestones.find("40")
    again = learner_for(run, config, 40)
    again.load_state(*run.newest().load())
    again.learn()
    assert "a milestone is saved once more: " in caplog.text
    assert run.milestones.find("40.2").step == 40
    (run.path / "milestones" / "40" / "manifest.json").write_text("{}")
    listed, (broken,) = run.milestones.listed()
    assert [one.name for one in listed] == ["40.2"] and "manifest.json is damaged" in str(broken)


def test_weights_that_are_not_finite_are_no_milestone(tmp_path):
    run, config = make_run(tmp_path, every=1000, total_steps=40)
    learner = learner_for(run, config, 20)

    def during(learner):
        if learner.steps == 20:
            with torch.no_grad():
                learner.model["actor"].bias[0] = torch.nan

    learner.during = during
    with pytest.raises(CheckpointError, match="holds NaN"):
        learner.learn()
    assert milestones(run) == {}


# --- finding them ----------------------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path) -> RunFolder:
    """A run with the milestones 20 (at step 24), 40, 60 (at 64) and 80."""
    run, config = make_run(tmp_path / "root", total_steps=80)
    learner_for(run, config, 20, steps_per_iteration=8).learn()
    assert milestones(run) == {"20": 24, "40": 40, "60": 64, "80": 80}
    return run


def test_every_way_to_name_one(run, tmp_path, monkeypatch):
    root = tmp_path / "root"
    for name, step in {"20": 24, "24": 24, "40": 40, "0.04k": 40, "64": 64}.items():
        assert run.milestones.find(name).step == step
        for path in (run.path, root / "toy", root):
            assert resolve_policy(path / "milestones" / name).step == step
            found = find_run(path, name)
            assert isinstance(found, Fork) and (found.run.path, found.checkpoint.step) == (run.path, step)
    assert resolve_checkpoint(run.path / "milestones").step == 80, "the newest"
    assert resolve_checkpoint(root / "toy" / "milestones").step == 80
    monkeypatch.setenv("WAVEDASH_RUNS", str(root))
    assert find_run(None, "40").checkpoint.step == 40
    monkeypatch.chdir(run.path)
    for path in ("milestones/40", "milestones"):
        assert isinstance(find_run(path), Fork)
    monkeypatch.chdir(run.path / "milestones" / "40")
    found = find_run(".")
    assert isinstance(found, Fork) and found.run.path == run.path and found.config == Path.cwd() / "config.yaml"


def test_a_wrong_name_is_answered_with_the_nearest(run, tmp_path):
    cases = {"50": r"no milestone 50; the nearest are (40 \(40 steps\), 60 \(64 steps\)|60 .*, 40 .*)\n`wavedash milestones ",
             "1.5B": r"no milestone 1.5B; the nearest are 80 \(80 steps\), 60 \(64 steps\)",
             "fourty": r"'fourty' names no milestone of .* \(40M, 1.5B or 40000000 would\); there are 80 .*, 60 .*, 40 .*, 20 "}
    for name, message in cases.items():
        for ask in (run.milestones.find, lambda name: resolve_checkpoint(run.path / "milestones" / name),
                    lambda name: find_run(run.path, name)):
            with pytest.raises(MilestoneError, match=message):
                ask(name)
    other, _ = make_run(tmp_path / "other")
    with pytest.raises(MilestoneError, match=r"has no milestones yet\n.*milestones.every=10000000"):
        find_run(other.path, "40M")
    with pytest.raises(RunError, match=r"no milestones at .*; looked at:\n.*toy"):
        run_with_milestones(tmp_path / "other")
    with pytest.raises(RunError, match="there is no folder"):
        run_with_milestones(tmp_path / "nothing")


def test_one_of_another_run_of_the_same_folder_is_named(run, tmp_path, monkeypatch):
    """Whoever goes on from a milestone has a newer run, which begins without those of the run before."""
    fork, config = make_run(tmp_path / "root", total_steps=32)
    learner_for(fork, config, 30, steps_per_iteration=8).learn()
    monkeypatch.chdir(tmp_path)
    named = f"another run has it: {Path('root', 'toy', run.path.name)}@60"
    for ask in (lambda: find_run("root/toy", "60"), lambda: resolve_policy("root/toy@60"),
                lambda: resolve_checkpoint("root/toy/milestones/60")):
        with pytest.raises(MilestoneError, match=r"no milestone 60; the nearest is 30") as error:
            ask()
        assert str(error.value).splitlines()[-1] == named
        assert find_run(named.rpartition(" ")[2]).checkpoint.step == 64, "what is named can be typed"
    with pytest.raises(MilestoneError) as error:
        find_run(fork.path, "60")
    assert str(error.value).endswith(f"another run has it: {run.path}@60")
    with pytest.raises(MilestoneError) as error:
        find_run("root/toy", "50")
    assert "another run" not in str(error.value)


def test_the_command_names_other_runs_that_have_some_and_paths_that_can_be_copied(tmp_path, capsys):
    """Two runs in a folder with a space in its name, as the folders of users often have on Windows."""
    runs = []
    for _ in range(2):
        run, config = make_run(tmp_path / "A B", total_steps=32)
        learner_for(run, config, 30, steps_per_iteration=8).learn()
        runs.append(run)
    app(["milestones", str(tmp_path / "A B" / "toy")], standalone_mode=False)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == str(runs[1].path), "the newest"
    commands = [shlex.split(line.partition(":")[2]) for line in printed if line.partition(":")[0] in ("play", "go on", "more")]
    assert commands == [["wavedash", "eval", f"{runs[1].path}/milestones/30"],
                        ["wavedash", "resume", str(runs[1].path), "--milestone", "30"],
                        ["wavedash", "milestones", str(runs[0].path)]]
    app(["milestones", str(runs[1].path)], standalone_mode=False)
    assert "more:" not in capsys.readouterr().out, "this run was named"
    with pytest.raises(UserError) as error:
        running(runs[0].path)
    assert shlex.split(str(error.value).rpartition(": ")[2])[:3] == ["wavedash", "resume", str(runs[0].path)]


def test_an_empty_path_names_no_run():
    """It would be the current folder, and whatever run is newest there: the variable of a script was not set."""
    with pytest.raises(RunError, match="an empty path names no run"):
        find_run("")


def test_milestones_of_phases_are_read_beside_those_of_a_run_that_had_none(run):
    store = run.milestones
    store.phase, store.every = "Phase2-Scoring", 20
    for step in (100, 120):
        store.save(step, {"policy": {"x": torch.zeros(1)}}, {}, {})
    store.phase = "Phase3-Team Play"
    store.save(140, {"policy": {"x": torch.zeros(1)}}, {}, {})
    assert milestones(run) == {"20": 24, "40": 40, "60": 64, "80": 80, "100": 100, "120": 120, "140": 140}
    facts = {one.name: one.facts() for one in run.milestones.listed()[0]}
    assert [facts[name]["phase"] for name in ("80", "120", "140")] == [None, "Phase2-Scoring", "Phase3-Team Play"]
    for name in ("120", "Phase2-Scoring/120"):
        for found in (run.milestones.find(name), resolve_checkpoint(run.path / "milestones" / name)):
            assert found.path == run.path / "milestones" / "Phase2-Scoring" / "120" and found.home == run.path
    assert isinstance(find_run(run.path / "milestones" / "Phase2-Scoring" / "120"), Fork)
    assert json.loads((run.path / "milestones" / "Phase2-Scoring" / "120" / FACTS).read_text()) == facts["120"]


def test_with_every_other_checkpoint_lost_the_run_itself_goes_on_from_a_milestone(run):
    for store in ("checkpoints", "final"):
        for path in (run.path / store).iterdir():
            (path / "state.json").write_text("rotten")
    found = find_run(run.path)
    assert type(found) is Found and found.checkpoint.path == run.path / "milestones" / "80"


def test_readers_never_see_what_is_half_written(run):
    shutil.copytree(run.path / "milestones" / "80", run.path / "milestones" / ".tmp-100")
    (run.path / "milestones" / "Phase1-Touch").mkdir()
    shutil.copytree(run.path / "milestones" / "80", run.path / "milestones" / "\033[31mPhase2-Red" / "80")
    assert list(milestones(run)) == ["20", "40", "60", "80"]
    MilestoneStore(run.path / "milestones").sweep()
    assert not (run.path / "milestones" / ".tmp-100").exists()


def test_the_command_lists_them(run, capsys):
    (run.path / "milestones" / "40" / "manifest.json").write_text("{}")
    app(["milestones", str(run.path)], standalone_mode=False)
    printed = capsys.readouterr()
    assert [line.split()[:2] for line in printed.out.splitlines()[1:5]] == [["milestone", "steps"], ["20", "24"], ["60", "64"],
                                                                           ["80", "80"]]
    assert f"wavedash resume {run.path} --milestone 80" in printed.out
    assert "40/manifest.json is damaged" in printed.err
    app(["milestones", str(run.path.parent.parent), "--json"], standalone_mode=False)
    told = json.loads(capsys.readouterr().out)
    assert told["run"] == str(run.path) and told["forked_from"] is None and len(told["damaged"]) == 1
    assert told["milestones"] == [run.milestones.find(name) and json.loads(
        (run.path / "milestones" / name / FACTS).read_text()) for name in ("20", "60", "80")]


def test_a_run_without_any_says_how_to_get_them(tmp_path, capsys):
    run, _ = make_run(tmp_path)
    app(["milestones", str(run.path)], standalone_mode=False)
    assert "no milestones yet" in capsys.readouterr().out
