"""`wavedash train ... --resume auto`: what it goes on with, with which settings, and what it says."""
from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tests import prepared
from tests.league.leagues import Stop
from tests.runs.test_fork import final, metrics, runs
from tests.runs.test_live import ROOT, Asking
from tests.test_several_processes import run_in_two
from wavedash.assembly import make_policy
from wavedash.config_file import load_config
from wavedash.envs.kinds import kind_of
from wavedash.envs.make import make_env
from wavedash.errors import UserError
from wavedash.ppo.learner import Learner
from wavedash.ppo.learner_state import fingerprint_of
from wavedash.runs.auto_resume import settings_now
from wavedash.runs.compatible import IncompatibleError
from wavedash.runs.folder import RunError, RunFolder
from wavedash.runs.fork import origin_of
from wavedash.training import resume, train

pytestmark = pytest.mark.slow

TINY = ("total_steps=160", "env.count=4", "ppo.rollout_steps=8", "ppo.epochs=2", "ppo.minibatch_size=16", "policy.hidden=[8]",
        "report.console=plain", "report.tensorboard=false", "device=cpu", "threads=1", "checkpoint.every=32",
        "milestones.every=64")
COMMAND = ("cartpole", *TINY)


@pytest.fixture(autouse=True)
def runs_here(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "runs"))


def settings(run: Path) -> Any:
    return load_config(str(run / "config.yaml"))


def test_one_command_on_a_machine_that_is_taken_away_again_and_again(tmp_path):
    """Each process is killed once it has saved something new. The run is the one that was never stopped."""
    command = (*COMMAND, "total_steps=12_000", "checkpoint.every=2000", "milestones.every=5000")
    words = ["-m", "wavedash", "train", *command, "--resume", "auto"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    said = []
    for _ in range(3):
        before = set((tmp_path / "runs").glob("*/*/checkpoints/*"))
        training = prepared.popen(words, env=environment, stdout=prepared.PIPE)
        while not set((tmp_path / "runs").glob("*/*/checkpoints/step-*")) - before:
            assert training.poll() is None
            time.sleep(0.02)
        training.kill()
        said.append(training.stdout.read())
        training.wait()
    assert train(*command, resume="auto") == 0
    (run,) = runs(tmp_path / "runs")
    assert f"new run: there is none in {tmp_path / 'runs' / 'cartpole'}" in said[0]
    assert all(f"going on with {run} at step" in line for line in said[1:])
    assert train(*command) == 0
    straight = runs(tmp_path / "runs")[-1]
    assert final(run) == final(straight) and metrics(run) == metrics(straight)


def test_what_was_changed_in_the_run_stays_and_what_changed_in_the_command_counts(tmp_path, capsys):
    """The rate is in the command and is then set in the run; the command is given again; then it asks for another rate."""
    command = (*COMMAND, "ppo.learning_rate=1e-4", "ppo.clip_range=0.3")
    assert train(*command, resume="auto", listeners=[Asking("ppo.learning_rate=5e-5", at=1), Stop(2)]) == 0
    (run,) = runs(tmp_path / "runs")
    capsys.readouterr()
    assert train(*command, resume="auto", listeners=[Stop(3)]) == 0
    assert (settings(run).ppo.learning_rate, settings(run).ppo.clip_range) == (5e-5, 0.3)
    said = capsys.readouterr().out
    assert "ppo.learning_rate stays as it was changed in the run; the command asks for the same as last time" in said
    assert train("cartpole", *TINY, "ppo.learning_rate=2e-4", resume="auto", listeners=[Stop(4)]) == 0
    said = capsys.readouterr().out
    assert (settings(run).ppo.learning_rate, settings(run).ppo.clip_range) == (2e-4, 0.2)
    assert "  ppo.learning_rate was 5e-05, now 0.0002\n" in said and "  ppo.clip_range was 0.3, now 0.2\n" in said
    resume(str(run), "ppo.gamma=0.5", listeners=[Stop(5)])
    assert train("cartpole", *TINY, "ppo.learning_rate=2e-4", "total_steps=192", resume="auto") == 0
    assert (settings(run).ppo.gamma, settings(run).total_steps) == (0.5, 192) and runs(tmp_path / "runs") == [run]


TASK = ("rocket-1v1", "opponents.members=[idle]")
MERGED: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], dict[str, Any]]] = {
    "nothing": ((), (), (), {}),
    "set in the run": ((), ("ppo.gamma=0.9",), (), {"ppo.gamma": 0.9}),
    "set in the command": ((), (), ("ppo.gamma=0.9",), {"ppo.gamma": 0.9}),
    "both": ((), ("ppo.gamma=0.9",), ("ppo.gamma=0.8", "ppo.epochs=7"), {"ppo.gamma": 0.8, "ppo.epochs": 7}),
    "left out of the command": (("ppo.gamma=0.9", "opponents.pool=9"), ("opponents.pool=8",), ("opponents.pool=9",), {
        "opponents.pool": 8}),
    "a reward comes and another goes": (
        ("env.rocket.rewards={goal: 1, touch: 2}",), ("env.rocket.rewards={goal: 5, touch: 2}",),
        ("env.rocket.rewards={goal: 1, flip_reset: 3}",), {"env.rocket.rewards": {"goal": 5, "flip_reset": 3}}),
    "a section goes": (("rating={}",), ("rating={every: 7}",), ("rating=null",), {"rating": None}),
    "what cannot change": (("seed=1", "name=a"), ("seed=1", "name=a"), ("seed=2", "name=b", "init=champion"), {
        "seed": 1, "name": "a"}),
}


@pytest.mark.parametrize("case", MERGED)
def test_settings_are_merged_by_what_changed_since_the_last_command(case):
    then, recorded, now, wanted = MERGED[case]
    asked, kept, asks = (load_config(TASK[0], [*TASK[1:], *overrides]) for overrides in (then, recorded, now))
    inlined = [f"{key}={'null' if value is None else value}" for key, value in wanted.items()]
    assert settings_now(kept, asked, asks) == load_config(TASK[0], [*TASK[1:], *inlined])
    unknown = settings_now(kept, None, asks)
    assert unknown.model_copy(update={"seed": asks.seed, "name": asks.name, "init": asks.init}) == asks


def test_what_does_not_fit_is_passed_over_and_named(tmp_path, capsys):
    root = tmp_path / "runs"
    for extra in (["policy.hidden=[4]"], ["ppo.normalize_obs=true"], ["total_steps=64"], []):
        assert train(*COMMAND, *extra, listeners=[] if "total_steps=64" in extra else [Stop(2)]) == 0
    larger, normal, finished, fits = runs(root)
    damaged = Path(shutil.copytree(larger, larger.with_name("99991231-000000-ffff")))
    for state in damaged.glob("*/*/state.json"):
        state.write_text("{}")
    capsys.readouterr()
    shutil.move(fits, tmp_path / "fits")
    assert train(*COMMAND, "total_steps=64", resume="auto", listeners=[Stop(1)]) == 0
    said = capsys.readouterr().out
    assert f"  not {larger}: its policy does not fit\n    policy.hidden: saved [4], now [8]\n" in said
    assert f"  not {normal}: its policy does not fit\n    ppo.normalize_obs: saved True, now False\n" in said
    assert f"  not {finished}: finished after 64 steps; a higher total_steps would go on with it\n" in said
    assert f"  not {damaged}: no usable checkpoint\n" in said
    assert f"new run: no other in {root / 'cartpole'} can go on\n" in said
    assert len(runs(root)) == 5
    shutil.move(tmp_path / "fits", fits)
    shutil.rmtree(next(run for run in runs(root) if run not in (larger, normal, finished, fits, damaged)))
    assert train(*COMMAND, resume="auto") == 0
    said = capsys.readouterr().out
    assert f"going on with {fits} at step 64: the newest run of this name that fits and is not finished\n" in said
    assert RunFolder(fits).finished()


def test_what_a_run_began_with_does_not_get_in_the_way(tmp_path, capsys):
    """The policy that it began with is gone, and the command has another seed."""
    assert train(*COMMAND, "name=source") == 0
    (source,) = runs(tmp_path / "runs")
    command = (*COMMAND, f"init={source}")
    assert train(*command, resume="auto", listeners=[Stop(2)]) == 0
    shutil.rmtree(source)
    assert train(*command, resume="auto", listeners=[Stop(3)]) == 0
    (run,) = runs(tmp_path / "runs")
    capsys.readouterr()
    assert train(*command, "seed=7", resume="auto", listeners=[Stop(4)]) == 0
    assert "seed=7 does not count, it stays 0: random streams go on from where they were saved" in capsys.readouterr().out
    assert runs(tmp_path / "runs") == [run] and settings(run).seed == 0


def test_a_path_is_gone_on_with_or_refused(tmp_path):
    assert train(*COMMAND, listeners=[Stop(3)]) == 0
    (run,) = runs(tmp_path / "runs")
    with pytest.raises(IncompatibleError, match=r"policy.hidden: saved \[8\], now \[4\]"):
        train(*COMMAND, "policy.hidden=[4]", resume=str(run))
    with pytest.raises(RunError, match="no checkpoint found at"):
        train(*COMMAND, resume=str(tmp_path / "nothing"))
    assert runs(tmp_path / "runs") == [run], "no new run instead"
    assert train(*COMMAND, "ppo.gamma=0.9", resume=f"{run}@64") == 0
    made = runs(tmp_path / "runs")[-1]
    assert origin_of(RunFolder(made)) == {"run": f"cartpole/{run.name}", "milestone": "64", "steps": 64}
    assert settings(made).ppo.gamma == 0.9 and RunFolder(made).asked == settings(made)
    assert train(*COMMAND, resume=str(run)) == 0 and RunFolder(run).finished()


def test_a_run_that_another_process_trains_is_not_begun_twice(tmp_path):
    assert train(*COMMAND, listeners=[Stop(2)]) == 0
    (run,) = runs(tmp_path / "runs")
    with RunFolder(run).locked(), pytest.raises(RunError, match="is being trained by process"):
        train(*COMMAND, resume="auto")
    assert runs(tmp_path / "runs") == [run]


@pytest.mark.parametrize("overrides", [("cartpole",), ("cartpole", "env.frame_stack=3", "ppo.normalize_obs=true"),
                                       ("rocket-1v1", "policy.memory={kind: gru, size: 4}"), ("rocket-2v2",)])
def test_the_fingerprint_of_a_configuration_is_that_of_its_learner(overrides):
    source, *changes = overrides
    config = load_config(source, [*changes, *(word for word in TINY if "hidden" in word or "count" in word)])
    clip = config.ppo.obs_clip if config.ppo.normalize_obs else None
    device = torch.device("cpu")
    cheap = fingerprint_of(kind_of(config.env).spaces(config.env, device), config.policy, clip)
    env = make_env(config.env, device)
    try:
        learners = Learner(env, make_policy(env, config), config).fingerprint()
    finally:
        env.close()
    learners.pop("source_space", None)
    assert cheap == learners


# --- a terminal ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals that Python could open")
@pytest.mark.parametrize("typed", ["\n", "nonsense\n7\n2\n"])
def test_in_a_terminal_the_user_chooses_a_milestone(tmp_path, typed):
    import pty

    assert train(*COMMAND, listeners=[Stop(4)]) == 0
    assert train(*COMMAND, "policy.hidden=[4]", listeners=[Stop(2)]) == 0
    run, other = runs(tmp_path / "runs")
    terminal, inside = pty.openpty()
    training = prepared.popen(["-m", "wavedash", "train", *COMMAND, "--resume", "auto"], stdin=inside, stdout=inside,
                              stderr=inside, env={**os.environ, "PYTHONPATH": str(ROOT)})
    os.close(inside)
    said = ""
    while "Enter: none of them" not in said:
        said += os.read(terminal, 10_000).decode()
    os.write(terminal, typed.encode())
    try:
        while more := os.read(terminal, 10_000):
            said += more.decode()
    except OSError:  # Linux says so when the process has closed its side
        pass
    os.close(terminal)
    assert training.wait() == 0, said
    said = said.replace("\r", "")
    assert "   1  128  (128 steps, 20" in said and "   2  64  (64 steps, 20" in said and f"of {run.name}" in said
    assert f"of {other.name}" not in said, "what does not fit is not offered"
    made = [path for path in runs(tmp_path / "runs") if path not in (run, other)]
    if typed == "\n":
        assert made == [] and f"going on with {run} at step 128" in said and RunFolder(run).finished()
    else:
        assert [origin_of(RunFolder(path))["milestone"] for path in made] == ["64"]
        assert f"going on with {run / 'milestones' / '64'} in a new run, as chosen" in said
        assert not RunFolder(run).finished() and RunFolder(made[0]).finished()


def test_with_several_processes_the_first_one_looks(tmp_path):
    words = ["-m", "wavedash", "train", *COMMAND, "--resume", "auto"]
    first = run_in_two(tmp_path, *words, "total_steps=192")
    second = run_in_two(tmp_path, *words, "total_steps=320")
    (run,) = (tmp_path / "runs").glob("*/*")
    assert first.count("new run: ") == 1 and second.count(f"going on with {run} at step 192") == 1
    assert RunFolder(run).finished() and settings(run).total_steps == 320


def test_an_unknown_word_is_a_path(tmp_path):
    with pytest.raises(UserError, match=r"no checkpoint found at .*always"):
        train(*COMMAND, resume="always")
