"""`debug.checkpoints`: whether checkpoints are written, can be read back and stay of the same size."""
from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

import torch

from wavedash.debug.report import DebugReport
from wavedash.findings import Findings, table
from wavedash.ppo.listener import IterationReport
from wavedash.runs.checkpoint import MILESTONES, Checkpoint, CheckpointError
from wavedash.runs.folder import STORES, RunFolder
from wavedash.runs.store import HIDDEN

if TYPE_CHECKING:
    from wavedash.config import RunConfig
    from wavedash.ppo.learner import Learner

GROWN = 1.25
"""Checkpoints should stay of one size: only replay-like buffers and listeners of one's own can make them grow"""
FAILED = "health/failed_saves"


class Checkpoints(DebugReport):
    """Looks at every new checkpoint, right after the iteration that wrote it, and at the folder when the run ends. `iterations`
    is how many checkpoints are looked at."""

    switch = "checkpoints"

    def __init__(self, run: RunFolder, iterations: int) -> None:
        super().__init__(run, iterations)
        self.known: set[int] = set()
        """When the checkpoints were saved that were looked at"""
        self.first: Checkpoint | None = None
        self.failed = 0.0
        self.began = 0

    # --- when --------------------------------------------------------------------------------------------------------

    def on_start(self, learner: Learner) -> None:
        self.began = learner.steps
        super().on_start(learner)

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        self.guard(learner, lambda: self._failures(report), "a save failed")

    def between_iterations(self, learner: Learner) -> None:
        """All listeners were told, so a checkpoint of this iteration is written, and the weights are still those in it."""
        if self.seen < self.iterations:
            self.guard(learner, lambda: self._new(learner), "a new checkpoint")

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        self.guard(learner, lambda: self._at_the_end(learner), "the end of the run")

    # --- what --------------------------------------------------------------------------------------------------------

    def before(self, learner: Learner) -> Findings:
        found, config = Findings(), learner.config
        every, total = config.checkpoint.every, learner.total_steps
        iteration = config.ppo.rollout_steps * learner.env.num_rows * learner.ranks.size
        found.say(f"a checkpoint is due every {every:,} steps, which is about every {-(-every // iteration):,} iterations of "
                  f"up to {iteration:,} steps; the newest {config.checkpoint.keep} are kept, in "
                  f"{self.run.path / 'checkpoints'}")
        if every > total - learner.steps:
            found.problem(f"no checkpoint is due before the end of the run, after {total:,} steps: a crash would lose all of "
                          f"it. Lower checkpoint.every={every:,}")
        if every < iteration and iteration < total:
            found.say(f"every iteration writes one: checkpoint.every={every:,} is less than an iteration")
        self._try_to_write(found)
        self.known = {checkpoint.manifest.saved_at for checkpoint in self._in("checkpoints")}
        return found

    def _try_to_write(self, found: Findings) -> None:
        folder = self.run.path / "checkpoints"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(bytes(2**20))
                os.fsync(file.fileno())
        except OSError as error:
            found.problem(f"nothing can be written into {folder} ({error.strerror or error}): no checkpoint will be saved. "
                          "Make the folder writable, make room on its disk, or move away what is in its place")

    def _failures(self, report: IterationReport) -> Findings | None:
        """The counter is that of before this iteration: its own checkpoint is written after this."""
        if (failed := report.metrics.get(FAILED, 0.0)) <= self.failed:
            return None
        self.failed, found = failed, Findings()
        newest = self.run.store("checkpoints").latest()
        have = f"The newest one is of step {newest.step:,}" if newest else "There is none yet"
        found.problem(f"{failed:.0f} checkpoint(s) could not be saved by step {report.steps:,}; the messages above say why. "
                      f"{have}: a crash would lose what came after it")
        return found

    def _new(self, learner: Learner) -> Findings | None:
        found = Findings()
        for checkpoint in self._in("checkpoints"):
            if checkpoint.manifest.saved_at not in self.known:
                self.known.add(checkpoint.manifest.saved_at)
                self.seen += 1
                self._examine(found, checkpoint, learner)
        return found or None

    def _examine(self, found: Findings, checkpoint: Checkpoint, learner: Learner) -> None:
        """Reads it back, and compares it with the weights and with the checkpoints before it."""
        sizes = {name: record.size for name, record in checkpoint.manifest.files.items()}
        parts = ", ".join(f"{name.partition('.')[0]} {_mib(size)}" for name, size in
                          sorted(sizes.items(), key=lambda item: -item[1])[:4])
        found.say(f"{checkpoint.path.name}: {_mib(_size(checkpoint))} ({parts}), "
                  f"{_mib(shutil.disk_usage(checkpoint.path).free)} free")
        try:
            checkpoint.verify()
            saved = checkpoint.load(["policy"])[0]["policy"]
        except CheckpointError as error:
            found.problem(f"the checkpoint that was just written cannot be read back: {error}")
            return
        if checkpoint.step == learner.steps:
            wrong = [name for name, x in learner.policy.state_dict().items()
                     if name not in saved or not torch.equal(saved[name], x.cpu())]
            if wrong:
                found.problem(f"the checkpoint of step {checkpoint.step:,} does not hold the weights of the policy: {wrong[0]} "
                              "differs")
            else:
                found.say("  it was read back: every byte is as it was written, and its weights are those of the policy")
        self._growth(found, checkpoint)
        self._room(found, checkpoint, learner.config)
        self.first = self.first or checkpoint

    def _growth(self, found: Findings, checkpoint: Checkpoint) -> None:
        first = self.first
        if first is None or _size(checkpoint) <= GROWN * _size(first):
            return
        before = {name: record.size for name, record in first.manifest.files.items()}
        file = max(checkpoint.manifest.files, key=lambda name: checkpoint.manifest.files[name].size - before.get(name, 0))
        found.problem(f"checkpoints grow: {_mib(_size(first))} at step {first.step:,}, {_mib(_size(checkpoint))} at step "
                      f"{checkpoint.step:,}, most of it in {file}. Whatever a listener or a part keeps there must not grow "
                      "with the run")

    def _room(self, found: Findings, checkpoint: Checkpoint, config: RunConfig) -> None:
        """Whether the disk has room for all that the run will keep."""
        size, left = _size(checkpoint), max(0, config.total_steps - checkpoint.step)
        kept = config.checkpoint.keep + 2  # best and final
        for every in (config.checkpoint.spaced_every, config.milestones.every if config.milestones else None):
            kept += 0 if every is None else left // every
        free = shutil.disk_usage(checkpoint.path).free
        if kept * size > free:
            found.problem(f"the run will keep about {kept:,} checkpoints of {_mib(size)}, {_mib(kept * size)}, and "
                          f"{_mib(free)} are free: lower checkpoint.keep, or raise checkpoint.spaced_every and "
                          "milestones.every")

    def _at_the_end(self, learner: Learner) -> Findings:
        found = Findings()
        rows = []
        for store in STORES:
            if kept := self._in(store):
                steps = sorted(checkpoint.step for checkpoint in kept)
                rows.append((store, len(kept), f"{steps[0]:,}", f"{steps[-1]:,}", _mib(sum(map(_size, kept)))))
        found.say(*table(("folder", "checkpoints", "first step", "last step", "size"), rows) if rows else [])
        newest = self.run.store("checkpoints").newest()
        if newest is None and learner.steps > self.began:
            found.problem(f"no intact checkpoint is in {self.run.path / 'checkpoints'} after {learner.steps:,} steps: the run "
                          "cannot be resumed. The messages above say why none was saved")
        elif newest is not None and newest.step < learner.steps:
            found.problem(f"the newest checkpoint is of step {newest.step:,}, and the run has come to step {learner.steps:,}: "
                          "what came between was not saved")
        left = [path.name for store in STORES for path in (self.run.path / store).glob(f"{HIDDEN}*")]
        if left:
            found.problem(f"half-written checkpoints are left in the run folder: {', '.join(left)}. The next start removes "
                          "them")
        return found

    def _in(self, store: str) -> list[Checkpoint]:
        """The checkpoints of a folder that can be opened: one may be broken, or be removed at this moment."""
        folder, found = self.run.path / store, []
        for path in sorted(folder.glob("**/manifest.json" if store == MILESTONES else "step-*/manifest.json")):
            with suppress(CheckpointError):
                found.append(Checkpoint.open(path.parent))
        return found


def _size(checkpoint: Checkpoint) -> int:
    return sum(record.size for record in checkpoint.manifest.files.values())


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB" if size < 2**30 else f"{size / 2**30:,.1f} GiB"
