"""The folder of one run holds everything about it and no absolute path, so that it can be copied to another machine.

    runs/<name>/<YYYYMMDD-HHMMSS>-<4 hex>/
      config.yaml       the resolved configuration, as last started or changed
      asked.yaml        the configuration that `wavedash train` was last asked for, before any change; see auto_resume.py
      signature.json    shows that this user started it, where the configuration names code; see trust.py
      command.txt       one line per start; env.jsonl: versions, git commit, machine; git-<time>.diff: uncommitted changes
      metrics.jsonl     every metric of every iteration; tb/ the same for TensorBoard; log.txt
      events.jsonl      every change that was made or refused while the run ran; see live.py
      live.yaml         settings to change while the run runs, written by the user; live/ what commands ask, and the answers
      games.csv         every game that was played to rate the policy
      checkpoints/      the newest few; best/ by recent return, by rating or by held-out loss; spaced/ kept for ever; final/
                        once it is finished
      milestones/       versions that are kept for ever, by name (40M/); see milestones.py
      forked.json       where the run came from, if it went on from a milestone of another; see fork.py
      league/           policies that the run plays against, where it has opponents; results.csv: how these games ended
      teacher/          the policy that the run learns from, where it has a teacher; see wavedash/distill
      prior/            the policy that the run began with, where its loss holds it near to that; see wavedash/imitate/prior.py
      crash/            data of failed updates, to find the cause, and recordings of what arenas did before the run failed
      recordings/       recorded games: highlights of the training, and what `wavedash eval --record` plays; docs/recordings.md
      debug/            reports of the debug switches, a file for each; see wavedash/debug
"""
from __future__ import annotations

import logging
import os
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path

from filelock import FileLock, Timeout

from wavedash.config import RunConfig
from wavedash.config_file import dump_config, load_config
from wavedash.errors import UserError
from wavedash.runs.checkpoint import MILESTONES, Checkpoint
from wavedash.runs.durable import remedy, replace_file, sync_folder
from wavedash.runs.facts import command_line, gather_facts, git_diff
from wavedash.runs.links import not_following, refuse_links
from wavedash.runs.live_file import LiveFile
from wavedash.runs.milestones import MilestoneStore
from wavedash.runs.plain import from_json, to_json
from wavedash.runs.store import CheckpointStore
from wavedash.runs.trust import sign

log = logging.getLogger(__name__)

ASKED = "asked.yaml"
RECORDINGS = "recordings"
"""Recordings of a run in its folder, those of no run beside the folders of runs"""
STORES = ("checkpoints", "best", "spaced", "final", MILESTONES)


class RunError(UserError):
    """A run folder cannot be made, found or used; the message names the cause and the next step."""


def runs_root() -> Path:
    return Path(os.environ.get("WAVEDASH_RUNS", "runs"))


def recordings_folder(home: Path) -> Path:
    """Where recordings of a policy go: into the folder of its run, or beside the runs if `home` is none."""
    return home / RECORDINGS if RunFolder.is_run(home) else runs_root() / RECORDINGS


def check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", name):
        raise RunError(f"the run's name {name!r} cannot name a folder: use letters, digits, - _ and . (name=... sets it)")


class RunFolder:
    """Names the parts of a run folder; `create` makes a new one."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.yaml"
        self.metrics = self.path / "metrics.jsonl"
        self.tensorboard = self.path / "tb"
        self.games = self.path / "games.csv"
        self.log = self.path / "log.txt"
        self.events = self.path / "events.jsonl"
        self.crash = self.path / "crash"
        self.recordings = self.path / RECORDINGS
        self.debug = self.path / "debug"
        self._recorded: RunConfig | None = None
        self._lock: FileLock | None = None

    @classmethod
    def create(cls, name: str, root: Path | None = None) -> RunFolder:
        check_name(name)
        parent = (root or runs_root()) / name
        path = parent / f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        try:
            (path / "checkpoints").mkdir(parents=True)
            for folder in (path, parent, parent.parent):
                sync_folder(folder)
        except OSError as error:
            raise RunError(f"cannot make the run folder {path}: {error.strerror}; {remedy(error)}, or set "
                           "WAVEDASH_RUNS to a folder that can be written") from error
        return cls(path)

    @staticmethod
    def is_run(path: Path) -> bool:
        return (path / "config.yaml").is_file() and (path / "checkpoints").is_dir()

    def record_start(self, config: RunConfig) -> None:
        """Writes, at every start and resume, what is run, with which versions and on which machine. Code that the configuration
        names is signed: it is trusted as this user's from now on."""
        refuse_links(self.path)
        try:
            self._write_start(config)
        except OSError as error:
            raise RunError(f"cannot write into the run folder {self.path}: {error.strerror or error}; {remedy(error)}, "
                           "or set WAVEDASH_RUNS to a folder on another one") from error
        self._recorded = config

    def record_asked(self, config: RunConfig) -> None:
        """Writes what a command asked for: the next one that goes on with this run sees what has changed in it since. RunError:
        it cannot be written."""
        try:
            replace_file(self.path / ASKED, dump_config(config).encode())
        except OSError as error:
            raise RunError(f"cannot write into the run folder {self.path}: {error.strerror or error}") from error

    @property
    def asked(self) -> RunConfig | None:
        """Returns what the last command asked for. None: that is not known, or this version cannot read it."""
        try:
            return load_config(str(self.path / ASKED))
        except UserError:
            return None

    @property
    def recorded(self) -> RunConfig | None:
        """The configuration in `config.yaml`, if this process has written it."""
        return self._recorded

    def record_change(self, config: RunConfig) -> None:
        """Replaces the configuration of a run that runs: it goes on with this one when it is resumed."""
        assert self._recorded is not None
        try:
            replace_file(self.config, dump_config(config).encode())
            sign(self.path, config)
        except OSError as error:
            with suppress(OSError):
                replace_file(self.config, dump_config(self._recorded).encode())
            raise RunError(f"cannot write {self.config}: {error.strerror or error}; {remedy(error)}") from error
        self._recorded = config

    def restore(self) -> None:
        """Makes the folder anew if it was deleted or moved away during the run, so that what is saved next can be resumed. It
        is locked anew too: the old lock went with it."""
        if self._recorded is None or self.config.exists():
            return
        log.error("%s was deleted or moved away during the run. It is made anew; what it held before is gone", self.path)
        try:
            (self.path / "checkpoints").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"cannot make the run folder {self.path} anew: {error.strerror or error}") from error
        self.record_start(self._recorded)
        if self._lock is not None:
            self._lock.release()
            self._acquire(self._lock)

    def _write_start(self, config: RunConfig) -> None:
        now = datetime.now()
        replace_file(self.config, dump_config(config).encode())
        sign(self.path, config)
        with open(self.path / "command.txt", "a", encoding="utf-8", opener=not_following) as file:
            file.write(f"{command_line()}\n")
        facts = {"time": now.isoformat(timespec="seconds"), **gather_facts()}
        if diff := git_diff():
            facts["git_diff"] = f"git-{now:%Y%m%d-%H%M%S}.diff"
            (self.path / facts["git_diff"]).write_text(diff, encoding="utf-8")
        with open(self.path / "env.jsonl", "a", encoding="utf-8", opener=not_following) as file:
            file.write(to_json(facts, indent=None) + "\n")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Makes sure that one process at a time trains in the folder, and that nothing in it leads outside. The system holds
        the lock, so a killed process leaves none behind."""
        refuse_links(self.path)
        lock = FileLock(self.path / ".lock", timeout=0, thread_local=False)
        self._acquire(lock)
        self._lock = lock  # not before: a lock that is held is released when its object is replaced
        try:
            yield
        finally:
            with suppress(OSError):
                self._holder_file.unlink(missing_ok=True)
            lock.release()
            self._lock = None

    def _acquire(self, lock: FileLock) -> None:
        try:
            lock.acquire()
        except Timeout:
            raise RunError(f"{self.path} is being trained by {self.holder or 'another process'}; stop it first, or start "
                           "another run") from None
        except OSError as error:
            raise RunError(f"cannot lock the run folder {self.path}: {error.strerror or error}; make room on that disk, and "
                           "see that the folder can be written") from error
        with suppress(OSError):  # on a full disk, others are not told who holds the lock
            # A file of its own, because Windows lets nobody read a locked file.
            self._holder_file.write_text(to_json({"pid": os.getpid(), "host": socket.gethostname()}), encoding="utf-8")

    @property
    def _holder_file(self) -> Path:
        return self.path / ".lock-holder.json"

    @property
    def holder(self) -> str | None:
        """The process that trains this run, or that was killed while it did: `process 4711 on castle`. None: nobody says so."""
        try:
            holder = from_json(self._holder_file.read_bytes())
            return f"process {holder['pid']} on {holder['host']}"
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @property
    def locked_at(self) -> int | None:
        """When a process began to train this run, by the clock of its disk (nanoseconds). None: nobody says so."""
        try:
            return self._holder_file.stat().st_mtime_ns
        except OSError:
            return None

    @cached_property
    def live_file(self) -> LiveFile:
        """`live.yaml`, watched by this process from the first call on: also while a run goes on with another learner."""
        return LiveFile(self.path)

    def store(self, name: str, keep: int | None = None) -> CheckpointStore:
        return self.milestones if name == MILESTONES else CheckpointStore(self.path / name, keep)

    @property
    def milestones(self) -> MilestoneStore:
        return MilestoneStore(self.path / MILESTONES)

    def newest(self) -> Checkpoint | None:
        """Returns the checkpoint to go on from: the newest intact regular one or, if there is none, another one."""
        found = (self.store(name).newest() for name in ("checkpoints", "final", MILESTONES, "spaced", "best"))
        return next((checkpoint for checkpoint in found if checkpoint), None)

    def finished(self) -> bool:
        final = self.store("final").newest()
        return final is not None and final.step >= load_config(str(self.config)).total_steps
