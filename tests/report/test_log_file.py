"""log.txt holds what the package logged and the error that ended the run."""
from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from tests import prepared
from tests.report.reports import stand_in_learner
from wavedash.report.log_file import EarlyMessages, LogFile

log = logging.getLogger("wavedash.somewhere")


def test_messages_since_the_listener_was_made_are_in_the_file(tmp_path: Path) -> None:
    listener = LogFile(tmp_path / "run" / "log.txt")
    log.info("making the environments")
    listener.on_start(stand_in_learner())
    log.warning("a worker was restarted")
    listener.on_stop(stand_in_learner(), None)
    log.warning("another run's business")
    text = (tmp_path / "run" / "log.txt").read_text(encoding="utf-8")
    assert "INFO wavedash.somewhere: making the environments" in text and "WARNING wavedash.somewhere: a worker" in text
    assert "another run" not in text


def test_the_traceback_of_a_broken_run_is_in_the_file(tmp_path: Path) -> None:
    listener = LogFile(tmp_path / "log.txt")
    try:
        raise ZeroDivisionError("the cause")
    except ZeroDivisionError as error:
        listener.on_stop(stand_in_learner(), error)
    text = (tmp_path / "log.txt").read_text(encoding="utf-8")
    assert "Traceback" in text and "ZeroDivisionError: the cause" in text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_does_not_flood_the_console(capfd: pytest.CaptureFixture[str]) -> None:
    listener = LogFile(Path("/dev/full"))
    log.info("cannot be kept")
    listener.on_stop(stand_in_learner(), None)
    assert "Traceback" not in capfd.readouterr().err


def test_early_messages_are_kept_until_the_log_file_takes_over(tmp_path: Path) -> None:
    log.warning("before")
    with EarlyMessages() as early:
        log.warning("while the run is prepared")
        listener = LogFile(tmp_path / "log.txt", early.stop())
        log.warning("with a file")
    listener.on_stop(stand_in_learner(), None)
    lines = (tmp_path / "log.txt").read_text(encoding="utf-8").splitlines()
    assert [line.partition(": ")[2] for line in lines] == ["while the run is prepared", "with a file"]


@pytest.mark.slow
def test_what_is_logged_while_a_run_is_restored_is_on_the_console_and_in_its_log_file(tmp_path: Path) -> None:
    """A resumed run with more environments drops those that were saved, and warns before the log file is opened."""
    small = ["env.count=2", "ppo.rollout_steps=32", "ppo.epochs=1", "ppo.minibatch_size=64", "policy.hidden=[8]", "device=cpu",
             "report.tensorboard=false"]
    _, run = _wavedash(tmp_path, "train", "cartpole", *small, "total_steps=64"), next((tmp_path / "cartpole").iterdir())
    console = _wavedash(tmp_path, "resume", str(run), "total_steps=160", "env.count=3")
    warning = "the saved state has 2 environments, this run has 3"
    assert console.count(warning) == 1 and (run / "log.txt").read_text(encoding="utf-8").count(warning) == 1


def _wavedash(runs: Path, *arguments: str) -> str:
    """Everything that a command prints."""
    done = prepared.run(["-m", "wavedash", *arguments], env={**os.environ, "WAVEDASH_RUNS": str(runs)})
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr
