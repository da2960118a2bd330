"""torchrun with two processes makes one run folder; resumed by two the run equals one that never stopped, resumed by one it
goes on."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests import prepared
from tests.league.leagues import TINY, ending
from wavedash.runs.find import resolve_checkpoint

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
SMALL = ["total_steps=3000", "milestones.every=1000", "checkpoint.every=500", "checkpoint.keep=100", "report.tensorboard=false",
         "ppo.normalize_obs=true", "ppo.normalize_reward=true", "ppo.buffer_rollouts=2"]


def run(folder: Path, *words: str) -> str:
    """Runs a command and returns its output."""
    result = prepared.run(words, folder, {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"})
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


def run_in_two(folder: Path, *words: str) -> str:
    """Runs a command in two processes and returns what both printed. They have the variables that torchrun sets."""
    return prepared.run_ranks(words, folder, {**os.environ, "PYTHONPATH": str(ROOT)})


def metrics(run_folder: Path) -> list[dict[str, float]]:
    lines = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if "second" not in k and "time" not in k} for line in lines]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run by two processes that was never stopped. It is torchrun itself that starts them."""
    folder = tmp_path_factory.mktemp("whole")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *TORCHRUN, "-m", "wavedash", "train", "cartpole", *SMALL], cwd=folder,
                          env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = folder.glob("runs/*/*")
    return made


def stopped_early(whole: Path, folder: Path) -> Path:
    """A copy of the run as it was after half of its steps."""
    copy = Path(shutil.copytree(whole, folder / "runs/cartpole" / whole.name))
    for store in ("final", "best"):
        shutil.rmtree(copy / store)
    for checkpoint in (copy / "checkpoints").iterdir():
        if int(checkpoint.name.removeprefix("step-")) > 1600:
            shutil.rmtree(checkpoint)
    return copy


def test_a_run_by_two_processes_is_one_run(whole):
    lines = metrics(whole)
    assert [line["run/iteration"] for line in lines] == list(range(1, len(lines) + 1)), "each iteration is written once"
    # An iteration is 8 environments x 32 steps of each rank; the first rollout only calibrates.
    assert [line["steps"] for line in lines] == [512 * (n + 1) for n in range(1, len(lines) + 1)]
    assert len((whole / "command.txt").read_text().splitlines()) == 1
    assert lines[-1]["recent/return"] > 20


def test_two_processes_begin_with_the_same_policy(whole, tmp_path):
    """Only the first reads it. Statistics of observations come with it, and what was learned is there at once."""
    run_in_two(tmp_path, "-m", "wavedash", "train", "cartpole", *SMALL, f"init={whole}", "ppo.critic_warmup=2",
        "ppo.normalize_reward=false", "total_steps=1024")
    (made,) = tmp_path.glob("runs/*/*")
    source, after = (resolve_checkpoint(path).load(["policy"])[0]["policy"] for path in (whole, made / "final"))
    changed = {name.partition(".")[0] for name, x in source.items() if not torch.equal(x, after[name])}
    assert changed == {"critic", "normalizer"}, "the actor of both processes is the source's"
    assert [line["steps"] for line in metrics(made)] == [512, 1024], "nothing is left to calibrate"


def test_resumed_by_two_processes_it_is_the_run_that_never_stopped(whole, tmp_path):
    copy = stopped_early(whole, tmp_path)
    said = run_in_two(tmp_path, "-m", "wavedash", "resume")
    assert said.count("resuming") == 1 and "in 2 processes" in said
    assert metrics(copy) == metrics(whole)
    (expected, _), (got, _) = (resolve_checkpoint(folder / "final").load() for folder in (whole, copy))
    assert expected.keys() == got.keys() >= {"rank1-env", "rank1-learner", "rank1-buffer"}
    assert not torch.equal(expected["env"]["seed"], expected["rank1-env"]["seed"]), "no two ranks play the same episodes"
    for group, tensors in expected.items():
        for name, x in tensors.items():
            assert torch.equal(x, got[group][name]), (group, name)


def test_two_processes_go_on_from_a_milestone_in_one_new_run(whole, tmp_path):
    copy = Path(shutil.copytree(whole, tmp_path / "runs/cartpole" / whole.name))
    assert sorted(path.name for path in (copy / "milestones").iterdir()) == ["1000", "2000", "3000"]
    run_in_two(tmp_path, "-m", "wavedash", "resume", str(copy), "--milestone", "1000")
    (made,) = set(tmp_path.glob("runs/*/*")) - {copy}
    assert metrics(made) == metrics(whole) == metrics(copy)
    (expected, _), (got, _) = (resolve_checkpoint(folder / "final").load() for folder in (whole, made))
    assert expected.keys() == got.keys() >= {"rank1-env"}
    assert all(torch.equal(x, got[group][name]) for group, tensors in expected.items() for name, x in tensors.items())


def test_resumed_by_one_process_it_goes_on_from_what_was_learned(whole, tmp_path):
    copy = stopped_early(whole, tmp_path)
    (before, _) = resolve_checkpoint(copy / "checkpoints").load()
    said = run(tmp_path, "-m", "wavedash", "resume", str(copy))
    assert said.count("holds the environments of 2 process(es), this run has 1") == 1
    after, state = resolve_checkpoint(copy / "final").load()
    assert state["ranks"] == 1 and not any(group.startswith("rank") for group in after)
    assert after["optimizer"]["step.policy"] > before["optimizer"]["step.policy"] > 0
    count = "normalizer.parts.obs.count"
    assert after["policy"][count] == before["policy"][count] + state["steps"] - 1536
    assert metrics(copy)[:2] == metrics(whole)[:2], "the metrics before the stop are kept"


def test_two_processes_play_against_the_same_opponents_and_resume_exactly(tmp_path):
    """Results are those of both; only the first has the run folder, and sends weights to the other."""
    words = ["train", "rocket-1v1", *TINY, "total_steps=2000", "opponents.members=[chaser]"]
    run_in_two(tmp_path, "-m", "wavedash", *words)
    (whole,) = tmp_path.glob("runs/*/*")
    copy = stopped_early(whole, tmp_path / "again")
    run_in_two(tmp_path, "-m", "wavedash", "resume", str(copy))
    one, two = ending(whole), ending(copy)
    assert len(one["pool"]) > 2 and one["results"].count("\n") > 4
    assert {"rank1-env.safetensors", "env.safetensors"} <= one["tensors"].keys()
    assert one["tensors"]["rank1-env.safetensors"] != one["tensors"]["env.safetensors"]
    for part in one:
        assert two[part] == one[part], part
