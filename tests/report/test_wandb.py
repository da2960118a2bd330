"""Weights & Biases may be slow, down or gone: training never waits for it and never ends because of it.

The client is replaced by a module that behaves as the real one does in each situation; process, pipe and queue are real.
"""
from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.report.reports import make_report, stand_in_learner
from wavedash.config_file import load_config
from wavedash.errors import UserError
from wavedash.report import wandb as our_wandb
from wavedash.report.mailbox import Mailbox
from wavedash.report.wandb import Wandb

CLIENT = """
import json, os, time
from pathlib import Path

behaviour, record = os.environ["FAKE_WANDB"], Path(os.environ["FAKE_WANDB_RECORD"])

def write(**entry):
    with record.open("a") as file:
        file.write(json.dumps(entry) + "\\n")

class Settings:
    def __init__(self, **settings): pass

class Run:
    points = 0
    def define_metric(self, name, step_metric): pass
    def log(self, point):
        Run.points += 1
        if behaviour == "breaks once" and Run.points == 3:
            raise ConnectionError("the service has gone")
        write(point=point)
    def finish(self):
        if behaviour == "hangs":
            time.sleep(1000)
        write(finished=True)

def init(**settings):
    write(init=settings["id"])
    if behaviour == "down":
        raise ConnectionError("no route to host")
    return Run()
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Installs the stand-in client with a behaviour, and returns a function that reads what it was asked to do."""
    def install(behaviour: str):
        folder, record = tmp_path / "packages", tmp_path / "record.jsonl"
        folder.mkdir()
        (folder / "wandb.py").write_text(CLIENT)
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), str(Path(__file__).parents[2])]))
        monkeypatch.setenv("FAKE_WANDB", behaviour)
        monkeypatch.setenv("FAKE_WANDB_RECORD", str(record))
        return lambda: [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    return install


def start(folder: Path) -> Wandb:
    listener = Wandb(load_config("cartpole", ["report.wandb=true"]), folder)
    listener.on_start(stand_in_learner())
    return listener


def feed(listener: Wandb, iterations: int) -> None:
    for iteration in range(1, iterations + 1):
        listener.on_iteration(stand_in_learner(), make_report(iteration, loss__value=0.5))


def wait_for(condition) -> None:
    while not condition():  # pytest-timeout ends a wait that is in vain
        time.sleep(0.02)


def test_every_point_arrives_in_order_and_the_run_is_finished(tmp_path: Path, client) -> None:
    record = client("works")
    listener = start(tmp_path)
    feed(listener, 20)
    listener.on_event(stand_in_learner(), "ppo.clip_range: 0.2 -> 0.1")
    listener.on_stop(stand_in_learner(), None)
    first, *points, event, last = record()
    assert event["point"] == {"steps": stand_in_learner().steps, "events": "ppo.clip_range: 0.2 -> 0.1"}
    assert first == {"init": f"cartpole-{tmp_path.name}"} and last == {"finished": True}
    assert [entry["point"]["steps"] for entry in points] == [100 * i for i in range(1, 21)]
    assert points[0]["point"]["loss/value"] == 0.5


def test_a_connection_that_breaks_is_made_again_and_no_point_is_lost(tmp_path: Path, client) -> None:
    record = client("breaks once")
    listener = start(tmp_path)
    feed(listener, 5)
    listener.on_stop(stand_in_learner(), None)
    assert [entry["point"]["steps"] for entry in record() if "point" in entry] == [100, 200, 300, 400, 500]
    assert sum("init" in entry for entry in record()) == 2


def test_while_the_service_is_down_the_user_is_told_and_the_end_does_not_hang(
    tmp_path: Path, client, caplog: pytest.LogCaptureFixture
) -> None:
    record = client("down")
    with caplog.at_level(logging.WARNING, "wavedash"):
        listener = start(tmp_path)
        feed(listener, 5)
        wait_for(lambda: "no route to host" in caplog.text)
        listener.on_stop(stand_in_learner(), None)
        wait_for(lambda: "ended without a connection" in caplog.text)
    assert listener._process.poll() == 1, "gave up by itself, without being killed"
    assert [entry for entry in record() if "point" in entry] == []


def test_a_sender_that_hangs_at_the_end_is_left_behind(
    tmp_path: Path, client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client("hangs")
    monkeypatch.setattr(our_wandb, "FINISH_SECONDS", 1.0)
    listener = start(tmp_path)
    feed(listener, 2)
    listener.on_stop(stand_in_learner(), None)
    assert "did not take the last points" in caplog.text and "metrics.jsonl" in caplog.text
    assert listener._process.wait() != 0


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="stops a process the POSIX way")
def test_a_sender_that_takes_nothing_loses_old_points_and_delays_nothing(
    tmp_path: Path, client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client("works")
    monkeypatch.setattr(our_wandb, "KEPT_POINTS", 50)
    monkeypatch.setattr(our_wandb, "FINISH_SECONDS", 0.5)
    listener = start(tmp_path)
    listener._process.send_signal(signal.SIGSTOP)
    feed(listener, 5_000)  # far more than a pipe holds: if one `put` waited for the sender, this would never end
    assert listener.outbox.dropped > 1_000
    listener.on_stop(stand_in_learner(), None)
    assert f"{listener.outbox.dropped} points were dropped" in caplog.text


def test_a_sender_that_died_is_reported_and_training_goes_on(
    tmp_path: Path, client, caplog: pytest.LogCaptureFixture
) -> None:
    client("works")
    listener = start(tmp_path)
    listener._process.kill()
    listener._process.wait()
    feed(listener, 1)
    wait_for(lambda: "process has ended" in caplog.text)
    feed(listener, 10)
    listener.on_stop(stand_in_learner(), None)


def test_the_sender_ends_when_the_trainer_is_killed_in_an_outage(tmp_path: Path, client) -> None:
    psutil = pytest.importorskip("psutil")
    record = client("down")
    script = ("import sys, time; from pathlib import Path; from tests.report.test_wandb import start\n"
              "print(start(Path(sys.argv[1]))._process.pid, flush=True); time.sleep(1000)")
    trainer = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert trainer.stdout is not None
    sender = psutil.Process(int(trainer.stdout.readline()))
    wait_for(record)  # it has tried to connect, and waits for its next try
    trainer.kill()
    trainer.wait()
    trainer.stdout.close()
    wait_for(lambda: not sender.is_running() or sender.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.parametrize("leftover", [False, True], ids=["nothing", "a folder of that name"])
def test_a_missing_package_is_named_before_the_run_starts(
    leftover: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if leftover:
        (tmp_path / "wandb").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(UserError, match=r'pip install "wavedash\[wandb\]"'):
        Wandb(load_config("cartpole", ["report.wandb=true"]), tmp_path)


def test_a_full_outbox_keeps_the_newest_points() -> None:
    box = Mailbox(3)
    for message in "abcde":
        box.put(message)
    box.close()
    assert list(box) == ["c", "d", "e"] and box.dropped == 2
