"""Whole runs in real processes: they are stopped, killed, resumed, and given broken environments."""
from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tests import prepared
from wavedash.runs.find import resolve_checkpoint

pytestmark = pytest.mark.slow

SMALL = ["total_steps=6000", "checkpoint.every=500", "report.tensorboard=false", "ppo.normalize_obs=true",
         "ppo.normalize_reward=true", "ppo.epochs=4"]


def wavedash(folder: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    result = prepared.run(["-m", "wavedash", *words], folder)
    assert not check or result.returncode == 0, result.stdout + result.stderr
    return result


def final_tensors(folder: Path) -> dict[str, torch.Tensor]:
    tensors, state = resolve_checkpoint(folder / "runs/cartpole/final").load()
    flat = {f"{group}.{name}": x for group, part in tensors.items() for name, x in part.items()}
    return {**flat, "recent": torch.tensor(state["recent"]).nan_to_num(-1)}


def metrics(folder: Path) -> list[dict[str, float]]:
    """Everything that was reported except times."""
    (path,) = folder.glob("runs/*/*/metrics.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{k: v for k, v in line.items() if "second" not in k and "time" not in k} for line in lines]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never stopped, by a process that has imported everything by itself."""
    folder = tmp_path_factory.mktemp("undisturbed")
    subprocess.run([sys.executable, "-m", "wavedash", "train", "cartpole", *SMALL], cwd=folder, check=True, timeout=200)
    return folder


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_that_is_killed_three_times_ends_as_one_that_never_was(
    tmp_path: Path, undisturbed: Path, workers: int
) -> None:
    """It is killed by SIGKILL, with and without worker processes, which do not change the numbers."""
    groups = [f"env.workers={workers}", "env.groups=1"] if workers else []
    command = ["train", "cartpole", *SMALL, *groups]
    seen = 0
    for _ in range(3):
        process = prepared.popen(["-m", "wavedash", *command], tmp_path, stdout=prepared.DEVNULL)
        seen = _wait_for_more(tmp_path, seen, process)
        time.sleep(random.random() * 0.1)  # the whole run takes a second: it must not end before it is killed
        process.send_signal(signal.SIGKILL)
        process.wait()
        command = ["resume"]
    if not list(tmp_path.glob("runs/*/*/final/step-*")):  # a slow machine may let it end just before the last kill
        wavedash(tmp_path, "resume")
    expected, got = final_tensors(undisturbed), final_tensors(tmp_path)
    assert expected.keys() == got.keys()
    for name, tensor in expected.items():
        assert torch.equal(tensor, got[name]), name
    strip = {"health/worker_restarts"}
    assert [{k: v for k, v in line.items() if k not in strip} for line in metrics(tmp_path)] == metrics(undisturbed)


def _wait_for_more(folder: Path, seen: int, process: Any) -> int:
    """Waits for a checkpoint beyond step `seen`."""
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        newest = max((int(p.name[5:17]) for p in folder.glob("runs/*/*/checkpoints/step-*")), default=0)
        if newest > seen:
            return newest
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.02)
    raise AssertionError("no checkpoint appeared")


def test_another_seed_leads_to_other_weights(tmp_path: Path, undisturbed: Path) -> None:
    """This is the control of the test above: its comparison can fail."""
    wavedash(tmp_path, "train", "cartpole", *SMALL, "seed=1")
    expected, got = final_tensors(undisturbed), final_tensors(tmp_path)
    assert not torch.equal(expected["policy.actor.head.logits.weight"], got["policy.actor.head.logits.weight"])


BROKEN = {
    "raise": ["ZeroDivisionError", "the ball is gone", "Traceback", "broken_envs.py"],
    "nan": ["observation[1] is nan", "after action"],
    "nan_reward": ["the reward is inf"],
    "shape": ["(4,)", "(3,)"],
    "dtype": ["observation"],
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_environment_is_named_and_nothing_learned_is_lost(tmp_path: Path, how: str) -> None:
    small = ["env.count=2", "ppo.rollout_steps=8", "ppo.minibatch_size=8", "ppo.epochs=1", "total_steps=1000",
             "report.tensorboard=false", "name=broken"]
    (tmp_path / "run.yaml").write_text(f"env: {{factory: 'tests.broken_envs:make', kwargs: {{how: {how}}}}}\n")
    result = prepared.run(["-m", "wavedash", "train", str(tmp_path / "run.yaml"), *small],
                          env={**os.environ, "WAVEDASH_RUNS": str(tmp_path / "runs")})
    assert result.returncode == 2
    message = result.stderr.strip().splitlines()[-1] + result.stderr
    for words in [*BROKEN[how], "environment ", "episode ", "seed "]:
        assert words in message
    assert resolve_checkpoint(tmp_path / "runs/broken").step >= 32  # what was learned in the two rollouts before


def test_a_run_that_is_being_trained_cannot_be_trained_twice(tmp_path: Path) -> None:
    process = prepared.popen(["-m", "wavedash", "train", "cartpole", *SMALL, "total_steps=10_000_000"], tmp_path,
                             stdout=prepared.DEVNULL)
    try:
        _wait_for_more(tmp_path, 0, process)
        second = wavedash(tmp_path, "resume", check=False)
        assert second.returncode == 2
        assert f"process {process.pid}" in second.stderr
    finally:
        process.kill()
        process.wait()


def test_weights_that_do_not_fit_are_refused_and_the_run_stays_as_it_was(tmp_path: Path) -> None:
    wavedash(tmp_path, "train", "cartpole", *SMALL, "total_steps=500")
    refused = wavedash(tmp_path, "resume", "runs/cartpole", "policy.hidden=[8]", "total_steps=1000", check=False)
    assert refused.returncode == 2
    assert "policy.hidden: saved [64, 64], now [8]" in refused.stderr
    wavedash(tmp_path, "resume", "runs/cartpole", "total_steps=1000")
    finished = wavedash(tmp_path, "resume", "runs/cartpole", check=False)
    assert finished.returncode == 2
    assert "total_steps=" in finished.stderr
