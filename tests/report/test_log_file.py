"""log.txt holds what the package logged and the error that ended the run."""
from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.report.reports import stand_in_learner
from wavedash.report.log_file import LogFile

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
