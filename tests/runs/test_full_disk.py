"""With a full disk, or files in the way, a run says what is wrong and what to do, or goes on if only reports are affected."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import prepared

pytestmark = pytest.mark.slow

resource = pytest.importorskip("resource")

SMALL = ["total_steps=600", "ppo.rollout_steps=16", "ppo.epochs=1"]


def wavedash(folder: Path, *words: str, room: int | None = None) -> subprocess.CompletedProcess[str]:
    """`room` limits the bytes of a file, as on a full disk. Unlike a small mount it needs no privilege. No bytecode is written
    there: Python 3.11 would leave the half of a file where other processes read it."""
    if room is None:
        return prepared.run(["-m", "wavedash", *words], folder)
    return subprocess.run([sys.executable, "-m", "wavedash", *words], cwd=folder, text=True, capture_output=True, timeout=200,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    done = wavedash(folder, "train", "cartpole", *SMALL)
    assert done.returncode == 0, done.stderr
    return folder


def test_a_full_disk_at_the_start_is_reported_before_anything_is_trained(tmp_path):
    done = wavedash(tmp_path, "train", "cartpole", *SMALL, room=200)
    assert done.returncode == 2
    assert "cannot write into the run folder" in done.stderr and "make room on that disk" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout and "finished" not in done.stdout


def test_a_full_disk_at_a_resume_leaves_the_run_as_it_was(tmp_path, finished):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    (config,) = tmp_path.glob("runs/*/*/config.yaml")
    before = config.read_bytes()
    done = wavedash(tmp_path, "resume", "runs/cartpole", "total_steps=1200", room=200)
    assert done.returncode == 2
    assert "make room on that disk" in done.stderr and "Traceback" not in done.stderr + done.stdout
    assert config.read_bytes() == before and [path for path in config.parent.iterdir() if path.name.endswith(".tmp")] == []


def test_a_disk_that_is_full_at_the_end_fails_the_run(tmp_path):
    """There is room for the configuration, for reports and for no checkpoint."""
    done = wavedash(tmp_path, "train", "cartpole", *SMALL, room=30_000)
    assert done.returncode == 2
    assert "was not saved" in done.stderr and "finished" not in done.stdout
    assert "Traceback" not in done.stderr + done.stdout


def test_training_goes_on_without_reports_that_cannot_be_written(tmp_path, finished):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    (run,) = tmp_path.glob("runs/*/*")
    shutil.rmtree(run / "tb")
    (run / "tb").write_text("a file")
    for name in ("metrics.jsonl", "log.txt"):
        (run / name).unlink()
        (run / name).mkdir()
    done = wavedash(tmp_path, "resume", "runs/cartpole", "total_steps=1200")
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "Traceback" not in said and "finished after" in said
    for name in ("tb", "metrics.jsonl", "log.txt"):
        assert f"{name}" in said and "cannot be written" in said
    assert list(run.glob("final/step-*"))
