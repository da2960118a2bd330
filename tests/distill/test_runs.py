"""Runs that learn from a teacher: their folder, resume, what is refused, and PPO that goes on from the student."""
from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import wavedash
from tests import prepared
from tests.runs.test_initial import StopAt, Watch
from wavedash.config_file import ConfigError, load_config
from wavedash.curriculum.plan import Plan
from wavedash.distill.source import FOLDER, find_teacher
from wavedash.distill.teacher import LABEL
from wavedash.errors import UserError
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.preflight import check_run
from wavedash.runs.compatible import IncompatibleError
from wavedash.runs.content import read_policy
from wavedash.runs.find import resolve_checkpoint
from wavedash.runs.folder import RunError
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.training import resume, train

ROOT = Path(__file__).parents[2]
TINY = ("env.count=4", "ppo.rollout_steps=8", "ppo.epochs=2", "ppo.minibatch_size=16", "policy.hidden=[8]",
        "report.console=off", "report.tensorboard=false", "device=cpu", "threads=1")
STUDENT = ("cartpole-memory", *TINY, "policy.memory.sequence=8", "policy.memory.size=8", "checkpoint.every=32",
           "env.factory=wavedash.envs.puzzles:cartpole_with_positions", "policy.actor_keys=[positions]",
           "policy.critic_keys=[positions]", "total_steps=192")
"""Six iterations, the first of which calibrates"""


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose policy remembers, and sees velocities."""
    root = tmp_path_factory.mktemp("teacher")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAVEDASH_RUNS", str(root))
        assert train("cartpole", *TINY, "total_steps=64", "policy.memory.kind=lstm", "policy.memory.sequence=8",
                     "ppo.normalize_obs=true", "ppo.learning_rate=0.02") == 0
    return next(root.glob("*/*/"))


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def only_run(folder: Path) -> Path:
    (run,) = folder.glob("*/*/")
    return run


def ending(run: Path) -> dict[str, bytes]:
    """The files of the final checkpoint but those with times in them."""
    final = resolve_checkpoint(run / "final").path
    return {path.name: path.read_bytes() for path in final.iterdir() if path.suffix == ".safetensors"}


def test_a_run_begins_as_its_teacher_or_says_why_it_cannot(teacher, runs, caplog):
    """With a rate that changes nothing, the student of a run ends with the weights that it began with. Its statistics go on."""
    alike = (*STUDENT, f"distill.teacher={teacher}", "distill.begin_as_teacher=true", "policy.memory.kind=lstm",
             "policy.memory.size=64", "policy.activation=tanh", "policy.actor_keys=[obs, positions]", "ppo.normalize_obs=true",
             "ppo.learning_rate=1e-30")
    assert train(*alike) == 0
    assert "there is nothing to learn" in caplog.text, "it sees all that its teacher sees"
    begun, its = (read_policy(resolve_checkpoint(run / "final"))[0] for run in (only_run(runs), teacher))
    assert begun.normalizer.moments("obs").count > its.normalizer.moments("obs").count > 0
    for part in ("head", "trunk.body", "trunk.memory"):
        own, given = (policy.actor.get_submodule(part).state_dict() for policy in (begun, its))
        for name, x in own.items():
            assert torch.equal(x[..., :4] if name.endswith("weight_in") else x, given[name]), name
    with pytest.raises(UserError, match=r"policy\.hidden is \[8\] there and \[9\] here"):
        check_run(load_config(alike[0], [*alike[1:], "policy.hidden=[9]"]))


class Labels(Listener):
    """Copies the labels of the latest rollout."""

    def __init__(self) -> None:
        self.seen: list[torch.Tensor] = []

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        self.seen.append(learner.rollout.labels[LABEL].clone())


def test_the_folder_of_a_run_holds_its_teacher_and_can_be_resumed_elsewhere_without_the_original(teacher, runs, tmp_path):
    original = Path(shutil.copytree(teacher, tmp_path / "original"))
    assert train(*STUDENT, f"distill.teacher={original}", "name=whole") == 0
    assert train(*STUDENT, f"distill.teacher={original}", "name=stopped", listeners=[StopAt(96)]) == 0
    whole, stopped = (next((runs / name).iterdir()) for name in ("whole", "stopped"))
    copy, source = PolicyFolder(whole / FOLDER), wavedash.load_policy(teacher).policy.state_dict()
    assert PolicyFolder.is_one(copy.path) and copy.step == 64
    assert all(torch.equal(x, source[name]) for name, x in copy.load()[0]["policy"].items())
    shutil.rmtree(original)
    elsewhere = Path(shutil.copytree(stopped, tmp_path / "elsewhere" / stopped.name))
    assert resume(str(elsewhere)) == 0
    assert ending(elsewhere) == ending(whole)
    log = (whole / "log.txt").read_text()
    assert "after 64 steps, which sees obs; the student sees positions" in log


KILLED = """
import os, sys
from wavedash.ppo.listener import Listener
from wavedash.training import train

class Kill(Listener):
    def on_iteration(self, learner, report):
        if report.iteration == 3:  # in the middle of the fourth rollout
            step, calls = learner.env.step, []
            def dying(action):
                calls.append(1)
                if len(calls) == 5:
                    os._exit(9)
                return step(action)
            learner.env.step = dying

train(*sys.argv[1:], listeners=[Kill()])
"""


@pytest.mark.slow
def test_a_run_that_is_killed_in_the_middle_of_a_rollout_goes_on_bit_for_bit(teacher, runs):
    words = [*STUDENT, f"distill.teacher={teacher}", "checkpoint.every=1"]
    assert train(*words, "name=whole") == 0
    killed = prepared.run(["-c", KILLED, *words, "name=killed"],
                          env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"})
    assert killed.returncode == 9, killed.stderr
    run = next((runs / "killed").iterdir())
    assert not (run / "final").exists()
    assert resume(str(run)) == 0
    assert ending(run) == ending(next((runs / "whole").iterdir()))


@pytest.mark.slow
def test_two_processes_learn_from_one_teacher_and_resume_exactly(teacher, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment.pop("WAVEDASH_RUNS", None)

    def run(*words: str) -> None:
        prepared.run_ranks(["-m", "wavedash", *words], tmp_path, environment)

    run("train", *STUDENT, f"distill.teacher={teacher}", "total_steps=384", "checkpoint.every=1", "checkpoint.keep=100")
    whole = only_run(tmp_path / "runs")
    copy = Path(shutil.copytree(whole, tmp_path / "again" / whole.name))
    for store in ("final", "best"):
        shutil.rmtree(copy / store)
    for checkpoint in (copy / "checkpoints").iterdir():
        if int(checkpoint.name.removeprefix("step-")) > 200:
            shutil.rmtree(checkpoint)
    run("resume", str(copy))
    one, two = ending(whole), ending(copy)
    assert one == two and {"learner.safetensors", "rank1-learner.safetensors"} <= one.keys()
    assert one["learner.safetensors"] != one["rank1-learner.safetensors"]


def test_another_teacher_than_the_one_it_began_with_is_refused(teacher, runs):
    assert train(*STUDENT, f"distill.teacher={teacher}", listeners=[StopAt(96)]) == 0
    run = only_run(runs)
    copy = PolicyFolder(run / FOLDER)
    tensors, state = copy.load()
    weights = {name: x.clone() for name, x in tensors["policy"].items()}
    weights["actor.head.logits.bias"] += 1e-3
    shutil.rmtree(copy.path)
    PolicyFolder.write(copy.path, None, weights, state)
    with pytest.raises(UserError, match=r"teacher is not the teacher that this run began with: its SHA-256 .* Copy the folder"):
        resume(str(run))
    described = state["fingerprint"]
    other = {**state, "fingerprint": {**described, "policy": {**described["policy"], "activation": "relu"}}}
    shutil.rmtree(copy.path)
    PolicyFolder.write(copy.path, None, tensors["policy"], other)
    with pytest.raises(UserError, match="is not the teacher that this run began with"):
        resume(str(run))
    (copy.path / "policy.safetensors").write_bytes(b"garbage")
    with pytest.raises(UserError, match=r"teacher holds a file that is not what it should be"):
        resume(str(run))


def test_where_the_copy_is_gone_the_original_teaches_if_it_is_the_same(teacher, runs, tmp_path):
    original = Path(shutil.copytree(teacher, tmp_path / "original"))
    assert train(*STUDENT, f"distill.teacher={original}", "name=whole") == 0
    assert train(*STUDENT, f"distill.teacher={original}", "name=stopped", listeners=[StopAt(96)]) == 0
    whole, run = (next((runs / name).iterdir()) for name in ("whole", "stopped"))
    shutil.rmtree(run / FOLDER)
    again = Path(shutil.copytree(run, tmp_path / "again"))
    assert resume(str(run)) == 0
    assert PolicyFolder.is_one(run / FOLDER) and ending(run) == ending(whole)
    shutil.rmtree(original)
    with pytest.raises(RunError, match=r"again/teacher, the copy of the teacher, is gone: copy it again from where"):
        resume(str(again))


def test_settings_of_distillation_count_on_resume_and_the_teacher_stays(teacher, runs):
    assert train(*STUDENT, f"distill.teacher={teacher}", listeners=[StopAt(96)]) == 0
    run = only_run(runs)
    for change in ("distill.teacher=elsewhere", "distill=null"):
        with pytest.raises(IncompatibleError, match=r"distill\.teacher was .*: it says from whom a run learns"):
            resume(str(run), change)
    labels = Labels()
    assert resume(str(run), "distill.critic=true", "distill.act=mean", listeners=[labels]) == 0
    assert len(labels.seen) == 3


def test_the_same_command_goes_on_with_the_run(teacher, runs, monkeypatch):
    monkeypatch.chdir(teacher.parent)
    words = [*STUDENT, f"distill.teacher={teacher.name}"]
    assert train(*words, listeners=[StopAt(96)]) == 0
    run = only_run(runs)
    assert load_config(str(run / "config.yaml")).distill.teacher == str(teacher), "a path does not depend on the folder"
    assert train(*words, resume="auto") == 0
    assert only_run(runs) == run and (run / "final").exists()
    assert train(*STUDENT, "distill=null", "total_steps=256", resume="auto") == 0, "it stays with its teacher"
    assert only_run(runs) == run


def test_a_milestone_is_gone_on_from_with_the_same_teacher(teacher, runs, tmp_path):
    original = Path(shutil.copytree(teacher, tmp_path / "original"))
    assert train(*STUDENT, f"distill.teacher={original}", "milestones.every=96") == 0
    run = only_run(runs)
    shutil.rmtree(original)
    assert resume(str(run), milestone="96") == 0
    (forked,) = set(runs.glob("*/*")) - {run}
    assert PolicyFolder.is_one(forked / FOLDER) and ending(forked) == ending(run)


def test_code_that_a_teacher_names_does_not_run_and_is_not_trusted_by_being_copied(teacher, runs, tmp_path):
    """Somebody else's run names a module to import; as a teacher only its numbers are read."""
    theirs = Path(shutil.copytree(teacher, tmp_path / "theirs"))
    config = (theirs / "config.yaml").read_text().replace("id: CartPole-v1", "id: null", 1)
    config = config.replace("factory: null", "factory: evil_module:make", 1)
    assert "evil_module" in config
    (theirs / "config.yaml").write_text(config)
    assert train(*STUDENT, f"distill.teacher={theirs}") == 0
    run = only_run(runs)
    assert "evil_module" in (run / FOLDER / "config.yaml").read_text() and "evil_module" not in sys.modules
    with pytest.raises(UserError, match="names code that would be run here"):
        _ = wavedash.load_run(run / FOLDER).config


def test_a_teacher_may_be_a_checkpoint_without_a_configuration(teacher, runs, tmp_path):
    bare = Path(shutil.copytree(resolve_checkpoint(teacher).path, tmp_path / "bare"))
    found = find_teacher(load_config(STUDENT[0], [*STUDENT[1:], f"distill.teacher={bare}"]))
    assert found is not None and found.config is None
    assert train(*STUDENT, f"distill.teacher={bare}", listeners=[StopAt(96)]) == 0
    shutil.rmtree(bare)
    assert resume(str(only_run(runs))) == 0


def test_ppo_goes_on_from_a_student(teacher, runs):
    """The critic of the student knows nothing yet, so it learns alone first."""
    assert train(*STUDENT, f"distill.teacher={teacher}", "name=student") == 0
    student = next((runs / "student").iterdir())
    watch = Watch()
    assert train(*STUDENT, "distill=null", f"init={student}", "ppo.critic_warmup=2", "ppo.normalize_reward=false", "name=tuned",
                 "total_steps=64", listeners=[watch]) == 0
    expected = wavedash.load_policy(student).policy.state_dict()
    assert all(torch.equal(x, expected[name]) for name, x in watch.weights.items()), "weights and statistics"
    tuned = wavedash.load_policy(next((runs / "tuned").iterdir()) / "final").policy.state_dict()
    changed = {name.partition(".")[0] for name, x in expected.items() if not torch.equal(x, tuned[name])}
    assert changed == {"critic", "normalizer"}
    assert train(*STUDENT, "distill=null", f"init={student}", "ppo.normalize_reward=false", "name=both", "total_steps=64") == 0
    both = wavedash.load_policy(next((runs / "both").iterdir()) / "final").policy.state_dict()
    assert not torch.equal(both["actor.head.logits.weight"], expected["actor.head.logits.weight"])


def refused(*overrides: str) -> str:
    with pytest.raises(UserError) as caught:
        check_run(load_config(STUDENT[0], [*STUDENT[1:], *overrides]))
    return str(caught.value)


def test_the_check_refuses_a_teacher_that_cannot_teach(teacher, runs, tmp_path):
    here = f"distill.teacher={teacher}"
    check_run(load_config(STUDENT[0], [*STUDENT[1:], here]))
    assert "distill.teacher=nowhere: no checkpoint found at" in refused("distill.teacher=nowhere")
    without = "env.factory=wavedash.envs.puzzles:masked_cartpole", "policy.actor_keys=null", "policy.critic_keys=null"
    assert "sees obs as [4] of float32, but in this environment it is [2] of float32" in refused(here, *without)
    maze = "env.factory=wavedash.envs.puzzles:TMaze", "policy.actor_keys=null", "policy.critic_keys=null"
    assert "has other actions than this environment, Discrete(2) and not Discrete(3)" in refused(here, *maze)
    with pytest.raises(UserError, match="has other actions"):
        train(*STUDENT, here, *maze)
    assert not runs.exists(), "nothing is left of a run that cannot begin"


@pytest.mark.parametrize(("option", "said"), [
    ("ppo.target_kl=0.01", "ppo.target_kl is not for a run that learns from a teacher (distill): no KL is measured"),
    ("ppo.schedule.kind=kl", "ppo.schedule.kind=kl is not for"), ("ppo.keep_samples=0.5", "samples are not ranked"),
    ("compile=true", "only PPO's networks are compiled"), ("ppo.critic_warmup=3", "or set distill.critic=true"),
    ("distill.speed=1", "unknown key 'distill.speed'; choose from teacher, act, critic"),
    ("phases=[{name: A, set: {distill.act: mean}}]", "phases may set what is in"),
])
def test_options_that_mean_nothing_to_a_student_are_refused(option, said):
    with pytest.raises(ConfigError) as caught:
        Plan(load_config(STUDENT[0], [*STUDENT[1:], "distill.teacher=x", option])).check()
    assert said in str(caught.value)


def test_a_student_that_samples_wildly_is_told(runs, tmp_path, caplog):
    small = [*TINY, "total_steps=32"]
    assert train("pendulum", *small, "name=teacher") == 0
    words: list[Any] = ["pendulum", *small, f"distill.teacher={runs / 'teacher'}"]
    for options, told in (([], True), (["distill.act=mean"], False), (["policy.initial_std=0.1"], False)):
        caplog.clear()
        assert train(*words, *options) == 0
        assert ("with a deviation of 1, where the range is 2 wide" in caplog.text) is told
        assert "there is nothing to learn" not in caplog.text, "it does not begin as its teacher"


def test_a_debug_report_does_not_blame_rewards_that_a_student_does_not_learn_from(teacher, runs):
    assert train(*STUDENT, f"distill.teacher={teacher}", "debug.learning=true") == 0
    assert "advantages are equal" not in (only_run(runs) / "debug/learning.txt").read_text(encoding="utf-8")
