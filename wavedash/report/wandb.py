"""Weights & Biases runs apart from training: no failure of the service, the network or its client can disturb the run.

The client runs in a process of its own (`wandb_sender.py`). Points go into a mailbox, from which a thread writes them to the
standard input of that process; when it does not read fast enough, the oldest are dropped. `metrics.jsonl` has all.
"""
from __future__ import annotations

import importlib.util
import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import IO, TYPE_CHECKING

from wavedash.errors import UserError
from wavedash.import_path import child_environment
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.report.all_metrics import all_metrics
from wavedash.report.mailbox import Mailbox

if TYPE_CHECKING:
    from wavedash.config import RunConfig
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)

KEPT_POINTS = 10_000
FINISH_SECONDS = 10.0
"""How long the end of a run waits for the last points to be sent"""


def check_installed() -> None:
    spec = importlib.util.find_spec("wandb")
    if spec is None or spec.origin is None:  # a folder that the client left behind has no origin
        raise UserError('report.wandb=true needs the wandb package: pip install "wavedash[wandb]", then `wandb login`')


class Wandb(Listener):
    """Hands the metrics of each iteration to the sender process. It waits for that process only at the end, and briefly."""

    def __init__(self, config: RunConfig, run_folder: Path):
        check_installed()
        self.outbox = Mailbox(KEPT_POINTS)
        self.folder = run_folder
        self._process: subprocess.Popen[str] | None = None
        self._end_requested = False
        self.settings = {
            "project": config.report.wandb_project,
            "name": f"{config.name}/{run_folder.name}",
            # A resumed run has the same id, so that its curves continue.
            "id": re.sub(r"[^A-Za-z0-9_-]", "-", f"{config.name}-{run_folder.name}"),
            "resume": "allow",
            "dir": str(run_folder),
            "config": config.model_dump(mode="json"),
        }

    def on_start(self, learner: Learner) -> None:
        with _client_log(self.folder / "wandb.log") as client_output:
            self._process = process = subprocess.Popen(
                [sys.executable, "-P", "-m", "wavedash.report.wandb_sender"], env=child_environment(),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=client_output, text=True, encoding="utf-8",
                # Ctrl-C must not reach the sender, which ends when its input does (the first option is for POSIX, the second
                # for Windows).
                start_new_session=True, creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        assert process.stdin and process.stdout
        Thread(target=self._feed, args=(process.stdin,), name="wandb-feed", daemon=True).start()
        self._relay_thread = Thread(target=self._relay, args=(process, process.stdout), name="wandb-relay", daemon=True)
        self._relay_thread.start()

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        self.outbox.put(json.dumps({"steps": report.steps, **all_metrics(report)}))

    def on_event(self, learner: Learner, event: str) -> None:
        self.outbox.put(json.dumps({"steps": learner.steps, "events": event}))

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        self._end_requested = self._process is None or self._process.poll() is None
        self.outbox.close()
        if self._process is None:
            return
        try:
            self._process.wait(FINISH_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            log.warning("Weights & Biases did not take the last points within %g s. All metrics are in metrics.jsonl; "
                        "`wandb sync` may find the missing ones under %s", FINISH_SECONDS, self.folder)
        self._relay_thread.join(1.0)  # it logs the last messages
        if self.outbox.dropped:
            log.warning("%d points were dropped on the way to Weights & Biases; metrics.jsonl has them", self.outbox.dropped)

    def _feed(self, pipe: IO[str]) -> None:
        """Writes points to the sender. It runs in a thread, because it blocks while the sender is stopped or hangs."""
        try:
            with pipe:
                print(json.dumps(self.settings), file=pipe, flush=True)
                for point in self.outbox:
                    print(point, file=pipe, flush=True)
        except OSError:  # the sender has ended, which `_relay` reports
            self.outbox.close()

    def _relay(self, process: subprocess.Popen[str], pipe: IO[str]) -> None:
        """Logs the messages of the sender, and its end if that was not requested. It may end before it has taken a single
        point, for instance when the client cannot be imported."""
        any_message = False
        with pipe:
            for line in pipe:
                log.warning("Weights & Biases: %s", line.rstrip())
                any_message = True
        code = process.wait()
        if not self._end_requested or (code > 0 and not any_message):
            errors = self.folder / "wandb.log"
            log.warning("the Weights & Biases process has ended with exit code %d; training and metrics.jsonl go on without "
                        "it. The last line of %s: %s", code, errors, _last_line(errors))


def _client_log(path: Path) -> IO[bytes]:
    try:
        return path.open("ab")
    except OSError as error:
        log.warning("%s cannot be written (%s): messages of the Weights & Biases client are lost", path, error)
        return open(os.devnull, "ab")


def _last_line(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "none"
