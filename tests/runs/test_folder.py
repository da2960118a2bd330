"""Run folders: what a start records, which process may train, and how a run or a checkpoint is found again."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time

import pytest
import torch

from tests.runs.stand_in import StandInLearner, forked, make_run
from wavedash.config import PolicyConfig
from wavedash.config_file import load_config
from wavedash.runs.compatible import IncompatibleError, check_compatible
from wavedash.runs.find import find_run, resolve_checkpoint, resolve_policy
from wavedash.runs.folder import RunError, RunFolder
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.runs.saver import Saver


def train(run, config, steps: int | None = None, returns=None) -> StandInLearner:
    learner = StandInLearner([Saver(run, config.checkpoint)], total_steps=config.total_steps)
    learner.returns = returns or {}
    if steps is not None:
        learner.during = lambda learner: learner.stop("enough") if learner.steps >= steps else None
    learner.learn()
    return learner


@pytest.fixture(autouse=True)
def _root(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))


def test_a_start_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["wavedash", "train", "toy", "name=my run"])
    run, config = make_run(tmp_path)
    run.record_start(config)
    assert run.path.parent == tmp_path / "toy"
    assert load_config(str(run.config)) == config
    assert (run.path / "command.txt").read_text() == 'wavedash train toy "name=my run"\n' * 2
    starts = [json.loads(line) for line in (run.path / "env.jsonl").read_text().splitlines()]
    assert len(starts) == 2
    assert starts[0]["packages"]["torch"] == torch.__version__
    assert starts[0]["cpus"] == os.cpu_count()


def test_the_commit_and_the_uncommitted_changes_are_kept(tmp_path, monkeypatch):
    code = tmp_path / "code"
    code.mkdir()
    monkeypatch.chdir(code)
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "first"]):
        (code / "reward.py").write_text("scale = 1\n")
        subprocess.run(["git", *command], check=True)
    (code / "reward.py").write_text("scale = 2\n")
    run, _ = make_run(tmp_path)
    start = json.loads((run.path / "env.jsonl").read_text())
    assert len(start["git_commit"]) == 40
    assert "-scale = 1\n+scale = 2\n" in (run.path / start["git_diff"]).read_text()


def test_no_git_and_no_repository_are_fine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    run, _ = make_run(tmp_path)
    assert json.loads((run.path / "env.jsonl").read_text())["git_commit"] is None


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".", "..", "a b", "~"])
def test_a_name_that_is_no_folder_name_is_refused(tmp_path, name):
    with pytest.raises(RunError, match="use letters"):
        RunFolder.create(name, tmp_path)


def test_a_second_trainer_is_refused_until_the_first_is_gone(tmp_path):
    run, _ = make_run(tmp_path)

    def hold(tell):
        with run.locked():
            tell("locked")
            time.sleep(60)

    with forked(hold) as child:
        assert child.line() == "locked"
        with pytest.raises(RunError, match=f"is being trained by process {child.pid} on .*; stop it first"), run.locked():
            pass
        child.kill()  # by SIGKILL, so that it cannot clean up
        child.wait()
        with run.locked(), pytest.raises(RunError, match=f"process {os.getpid()}"), run.locked():
            pass
    with run.locked():
        pass


def test_without_a_name_the_unfinished_run_that_saved_last_is_resumed(tmp_path):
    first, config = make_run(tmp_path, "first")
    second, _ = make_run(tmp_path, "second")
    done, _ = make_run(tmp_path, "done")
    make_run(tmp_path, "never-saved")
    train(second, config, steps=40)
    train(first, config, steps=60)
    train(done, config)
    assert done.finished()
    assert not first.finished()
    found = find_run()
    assert (found.run.path, found.checkpoint.step) == (first.path, 60)


def test_with_nothing_to_resume_the_error_lists_what_was_found(tmp_path):
    with pytest.raises(RunError, match=r"nothing to resume under .*: no runs there\nStart one with `wavedash train`"):
        find_run()
    done, config = make_run(tmp_path, "done")
    train(done, config)
    empty, _ = make_run(tmp_path, "empty")
    broken, _ = make_run(tmp_path, "broken")
    train(broken, config)
    broken.config.write_text("total_steps: [")
    with pytest.raises(RunError) as caught:
        find_run()
    assert f"{done.path}: finished" in str(caught.value)
    assert f"{empty.path}: no usable checkpoint" in str(caught.value)
    assert f"{broken.path}: {broken.config}:1: not valid YAML" in str(caught.value)


def test_a_finished_run_goes_on_with_more_steps(tmp_path):
    run, config = make_run(tmp_path)
    train(run, config)
    with pytest.raises(RunError):
        find_run()
    run.record_start(config.model_copy(update={"total_steps": 200}))
    assert find_run().checkpoint.step == 100


def test_every_way_to_name_a_run_or_checkpoint(tmp_path, monkeypatch):
    returns = {2: (5.0, 100.0)}  # best at step 20
    old, config = make_run(tmp_path)
    train(old, config, steps=60, returns=returns)
    new, _ = make_run(tmp_path)
    train(new, config, steps=40)  # no episode ended: no best
    older_step = old.path / "checkpoints" / "step-000000000040"

    assert find_run(new.path).checkpoint.step == 40
    assert find_run(older_step).run.path == old.path
    assert find_run(older_step).checkpoint.step == 40
    assert find_run(tmp_path / "toy").run.path == new.path
    assert find_run(tmp_path).run.path == new.path
    assert find_run(old.path / "best").checkpoint.step == 20

    assert resolve_checkpoint(older_step).step == 40
    assert resolve_checkpoint(old.path / "best").step == 20
    assert resolve_checkpoint(old.path / "checkpoints").step == 60
    assert resolve_checkpoint(old.path).step == 20
    assert resolve_checkpoint(new.path).step == 40
    assert resolve_checkpoint(tmp_path / "toy").step == 40
    assert resolve_checkpoint(tmp_path / "toy" / "best").path.parent == old.path / "best"
    monkeypatch.chdir(tmp_path)
    assert resolve_checkpoint("toy/best").step == 20
    monkeypatch.chdir(older_step)
    assert find_run(".").run.path == old.path

    (old.path / "empty").mkdir()
    for missing, reason in ((tmp_path / "toy" / "final", r"; looked at:\n.*: no usable checkpoint"),
                            (tmp_path / "nothing", ": there is no such file or folder"),
                            (old.path / "config.yaml", ": that is a file"),
                            (old.path / "empty", ": neither a checkpoint nor a run is there")):
        with pytest.raises(RunError, match=f"no checkpoint found at .*{reason}"):
            resolve_checkpoint(missing)


def test_a_folder_of_policies_and_half_a_policy_are_answered_with_what_to_name(tmp_path, caplog):
    """`league/` of a run holds policies: which one is meant?"""
    run, config = make_run(tmp_path)
    for name in ("step-000000000010", "step-000000000020"):
        PolicyFolder.write(run.path / "league" / name, config, {}, {})
    with pytest.raises(RunError, match=r"league holds several policies: name one of them, .*10, .*step-000000000020$"):
        resolve_policy(run.path / "league")
    assert "skipped" not in caplog.text
    half = run.path / "league" / "step-000000000010"
    (half / "config.yaml").unlink()
    with pytest.raises(RunError, match=r"holds config.yaml, policy.safetensors, state.json, and this one lacks config.yaml\n"):
        resolve_policy(half)


def test_a_checkpoint_without_its_run_can_be_played_but_not_resumed(tmp_path):
    run, config = make_run(tmp_path)
    train(run, config, steps=20)
    shutil.copytree(run.newest().path, tmp_path / "alone" / "x" / "mine")
    assert resolve_checkpoint(tmp_path / "alone" / "x" / "mine").step == 20
    with pytest.raises(RunError, match="not inside a run folder"):
        find_run(tmp_path / "alone" / "x" / "mine")


def test_a_copied_run_is_resumed_from_the_copy(tmp_path):
    run, config = make_run(tmp_path)
    train(run, config, steps=60)
    shutil.copytree(run.path, tmp_path / "elsewhere" / "copy")
    shutil.rmtree(run.path)
    assert find_run().run.path == tmp_path / "elsewhere" / "copy"
    for file in (tmp_path / "elsewhere").rglob("*"):
        if file.suffix in (".json", ".yaml") and file.is_file():
            assert str(tmp_path) not in file.read_text()


def test_with_every_regular_checkpoint_lost_a_spaced_one_is_used(tmp_path):
    run, config = make_run(tmp_path, spaced_every=50)
    train(run, config, steps=80)
    for path in (run.path / "checkpoints").iterdir():
        (path / "state.json").write_text("rotten")
    assert find_run(run.path).checkpoint.path == run.path / "spaced" / "step-000000000050"


def test_an_incompatible_checkpoint_is_refused_key_by_key():
    saved = {"observation_space": {"shape": [4]}, "policy": {"hidden": [64, 64], "shared": False}, "old": 1}
    check_compatible(saved, {"observation_space": {"shape": (4,)}, "policy": {"hidden": [64, 64], "shared": False}, "old": 1})
    with pytest.raises(IncompatibleError) as caught:
        check_compatible(saved, {"observation_space": {"shape": [5]}, "policy": {"hidden": [64, 64], "shared": True}, "new": 2})
    assert str(caught.value).splitlines()[1:-1] == [
        "  new: saved nothing, now 2",
        "  observation_space.shape: saved [4], now [5]",
        "  old: saved 1, now nothing",
        "  policy.shared: saved False, now True",
    ]


def test_finding_runs_needs_no_torch():
    code = "import sys, wavedash.runs.find; sys.exit('torch' in sys.modules)"
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=here).returncode == 0


def test_a_checkpoint_older_than_an_option_has_its_default():
    now = {"policy": PolicyConfig(hidden=[8]).model_dump(mode="json")}
    old = {"policy": {name: x for name, x in now["policy"].items() if name not in ("orthogonal", "gsde")}}
    check_compatible(old, now)
    another_beginning = PolicyConfig(hidden=[8], orthogonal=False).model_dump(mode="json")
    check_compatible(old, {"policy": another_beginning})
    with pytest.raises(IncompatibleError, match=r"policy\.gsde\.expln: saved False, now True"):
        check_compatible(old, {"policy": PolicyConfig(hidden=[8], gsde={"expln": True}).model_dump(mode="json")})
