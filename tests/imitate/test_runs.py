"""Runs that imitate: recorded, trained, killed, resumed, refused, and PPO that goes on from the clone near to it."""
from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import wavedash
from tests import prepared
from tests.distill.test_runs import KILLED, TINY, ending, only_run
from tests.imitate.cloners import made_up
from tests.runs.test_initial import StopAt
from wavedash.cli.app import app
from wavedash.config_file import ConfigError, load_config
from wavedash.errors import UserError
from wavedash.imitate.demonstrations import read, write_samples
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.preflight import check_run
from wavedash.runs.compatible import IncompatibleError
from wavedash.runs.find import resolve_checkpoint
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.training import resume, train

ROOT = Path(__file__).parents[2]
CLONE = ("cartpole-memory", *TINY, "policy.memory.sequence=8", "policy.memory.size=8", "checkpoint.every=32", "total_steps=192",
         "imitate.every=64")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a policy with memory did in CartPole without velocities, recorded by the command."""
    root = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAVEDASH_RUNS", str(root))
        assert train(*CLONE[:-1], "name=teacher", "total_steps=64", "ppo.learning_rate=0.02") == 0
        done = CliRunner().invoke(app, ["imitate", "record", str(root / "teacher"), str(root / "d.safetensors"), "--episodes",
                                        "20", "--stochastic"])
    assert done.exit_code == 0 and "samples of 20 episodes" in done.output, done.output
    return root / "d.safetensors"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


class Metrics(Listener):
    """Keeps what the listeners before it have added."""

    def __init__(self) -> None:
        self.seen: list[dict[str, float]] = []

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        self.seen.append(dict(report.metrics))


def test_a_recording_holds_what_the_policy_saw_and_did(recorded: Path) -> None:
    """Shown it again with its memory, a policy that takes its likeliest action does what it did."""
    folder = recorded.parent
    run = wavedash.load_run(folder / "teacher")
    from wavedash.envs.kinds import Spaces
    from wavedash.imitate.held_out import measure
    from wavedash.imitate.record import record_episodes
    from wavedash.imitate.samples import samples_of

    record_episodes(run, folder / "likeliest.safetensors", 70)
    policy = run.policy.policy
    samples = samples_of(read(folder / "likeliest.safetensors"), Spaces(policy.observation_space, policy.action_space))
    assert int(samples.begins.sum()) >= 70 and samples.known.all()
    assert measure(policy, samples, torch.arange(samples.count))["imitate/accuracy"] == 1.0
    other = samples_of(read(recorded), Spaces(policy.observation_space, policy.action_space))
    assert measure(policy, other, torch.arange(other.count))["imitate/accuracy"] < 1.0, "the control: it sampled there"


def test_a_clone_can_be_resumed_elsewhere_and_played(recorded: Path, runs: Path, tmp_path: Path) -> None:
    here = f"imitate.data={recorded}"
    told = Metrics()
    assert train(*CLONE, here, "name=whole", listeners=[told]) == 0
    assert train(*CLONE, here, "name=stopped", listeners=[StopAt(96)]) == 0
    whole, stopped = (next((runs / name).iterdir()) for name in ("whole", "stopped"))
    elsewhere = Path(shutil.copytree(stopped, tmp_path / "elsewhere" / stopped.name))
    moved = shutil.copyfile(recorded, tmp_path / "moved.safetensors")
    assert resume(str(elsewhere), f"imitate.data={moved}") == 0
    assert ending(elsewhere) == ending(whole)
    metrics = [line for line in (whole / "metrics.jsonl").read_text().splitlines() if "held_out_loss" in line]
    assert len(metrics) == 3, "it is measured every 64 of 192 steps"
    best = resolve_checkpoint(whole / "best")
    assert -best.metrics["imitate/held_out_loss"] == max(-float(line.split('held_out_loss": ')[1].split(",")[0])
                                                          for line in metrics)
    assert "recent/return" not in told.seen[-1] and "demonstrations: " in (whole / "log.txt").read_text()
    policy = wavedash.load_policy(whole)
    assert policy.act(torch.zeros(2).numpy()) in (0, 1)
    done = CliRunner().invoke(app, ["eval", str(whole), "--episodes", "2"])
    assert done.exit_code == 0 and "return" in done.output


@pytest.mark.slow
def test_a_run_that_is_killed_in_the_middle_of_a_rollout_goes_on_bit_for_bit(recorded: Path, runs: Path) -> None:
    words = [*CLONE, f"imitate.data={recorded}", "checkpoint.every=1"]
    assert train(*words, "name=whole") == 0
    killed = prepared.run(["-c", KILLED, *words, "name=killed"],
                          env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"})
    assert killed.returncode == 9, killed.stderr
    run = next((runs / "killed").iterdir())
    assert resume(str(run)) == 0
    assert ending(run) == ending(next((runs / "whole").iterdir()))


@pytest.mark.slow
def test_two_processes_learn_from_one_file_and_resume_exactly(recorded: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "WAVEDASH_RUNS": str(tmp_path)}

    def run(*words: str) -> None:
        prepared.run_ranks(["-m", "wavedash", *words], tmp_path, environment)

    words = [*CLONE, f"imitate.data={recorded}"]
    run("train", *words, "name=whole")
    run("train", *words, "name=half", "total_steps=96")
    run("resume", "half", "total_steps=192")
    whole, half = (next((tmp_path / name).iterdir()) for name in ("whole", "half"))
    assert ending(whole) == ending(half)


def test_another_file_is_refused_on_resume(recorded: Path, runs: Path, tmp_path: Path) -> None:
    assert train(*CLONE, f"imitate.data={recorded}", listeners=[StopAt(96)]) == 0
    found = read(recorded)
    other = tmp_path / "other.safetensors"
    write_samples(other, found.tensors["obs"] + 0.1, found.tensors["action"], found.tensors["episode"])
    with pytest.raises(UserError, match=r"imitate\.data is not the file that this run began with"):
        resume(str(only_run(runs)), f"imitate.data={other}")
    with pytest.raises(IncompatibleError, match=r"imitate\.held_out was 0\.1, now 0\.2: it says which episodes"):
        resume(str(only_run(runs)), "imitate.held_out=0.2")
    with pytest.raises(IncompatibleError, match="imitate=null init=RUN"):
        resume(str(only_run(runs)), "imitate=null")


def test_the_check_refuses_files_that_do_not_fit(recorded: Path, runs: Path, tmp_path: Path) -> None:
    def refused(*overrides: str) -> str:
        with pytest.raises(UserError) as caught:
            check_run(load_config(CLONE[0], [*CLONE[1:], *overrides]))
        return str(caught.value)

    check_run(load_config(CLONE[0], [*CLONE[1:], f"imitate.data={recorded}"]))
    assert "no such file of demonstrations" in refused("imitate.data=nowhere.safetensors")
    other = made_up(tmp_path / "d.safetensors", "discrete")
    assert "obs is [4] of each sample, and in this environment it is [2]" in refused(f"imitate.data={other}")
    with pytest.raises(UserError, match=r"lower env\.count"):
        train(*CLONE, f"imitate.data={recorded}", "env.count=100000")
    with pytest.raises(UserError, match="obs is"):
        train(*CLONE, f"imitate.data={other}")
    assert not runs.exists(), "nothing is left of a run that cannot begin"


@pytest.mark.parametrize(("options", "said"), [
    (["ppo.target_kl=0.01"], "ppo.target_kl is not for a run that learns from demonstrations (imitate): no KL is measured"),
    (["compile=true"], "only PPO's networks are compiled"), (["ppo.critic_warmup=3"], "no critic is trained; leave it at 0"),
    (["distill.teacher=x"], "it has a teacher beside them; set one of the two"),
    (["init=x", "prior={}"], "it is a term of PPO's loss"), (["phases=[{name: A}]"], "set phases=[]"),
    (["imitate=null", "prior={}"], "name that one (init=RUN)"),
    (["imitate.coef=1"], "unknown key 'imitate.coef'"),
])
def test_options_that_mean_nothing_here_are_refused(options: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(CLONE[0], [*CLONE[1:], "imitate.data=x", *options])
    assert said in str(caught.value)


def test_nothing_held_out_means_no_best(recorded: Path, runs: Path) -> None:
    assert train(*CLONE, f"imitate.data={recorded}", "imitate.held_out=0") == 0
    run = only_run(runs)
    assert not any((run / "best").glob("step-*")) and "held_out" not in (run / "metrics.jsonl").read_text()
    assert resolve_checkpoint(run).step == 192


PPO: tuple[Any, ...] = (*CLONE[:-1], "prior={coef: 0.5, fade: 160}")


def test_ppo_goes_on_from_a_clone_near_to_it_and_resumes_without_the_original(recorded: Path, runs: Path,
                                                                              tmp_path: Path) -> None:
    assert train(*CLONE, f"imitate.data={recorded}", "name=clone") == 0
    clone = Path(shutil.copytree(next((runs / "clone").iterdir()), tmp_path / "clone"))
    told = Metrics()
    assert train(*PPO, f"init={clone}", "name=whole", listeners=[told]) == 0
    assert train(*PPO, f"init={clone}", "name=stopped", listeners=[StopAt(96)]) == 0
    whole, stopped = (next((runs / name).iterdir()) for name in ("whole", "stopped"))
    lines = (whole / "metrics.jsonl").read_text().splitlines()
    assert '"prior/kl"' in lines[1] and '"prior/kl"' not in lines[-1] and '"prior/coef": 0.0' in lines[-1]
    copy, source = PolicyFolder(whole / "prior"), wavedash.load_policy(clone).policy.state_dict()
    assert all(torch.equal(x, source[name]) for name, x in copy.load()[0]["policy"].items())
    shutil.rmtree(clone)
    elsewhere = Path(shutil.copytree(stopped, tmp_path / "elsewhere" / stopped.name))
    assert resume(str(elsewhere)) == 0
    assert ending(elsewhere) == ending(whole)
    shutil.rmtree(elsewhere / "prior")
    with pytest.raises(UserError, match="the copy of the prior, is gone"):
        resume(str(elsewhere), "total_steps=400")
