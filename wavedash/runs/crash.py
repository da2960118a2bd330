"""Data and weights of an update whose gradients were not finite are written to a file, to find the cause."""
from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from wavedash.ppo.listener import IterationReport, Listener

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)

MOST_DUMPS = 3
"""Later failures of a run tell little that is new, and a rollout can be large."""


class SkippedUpdates(Listener):
    """Writes `crash/skipped-<steps>.safetensors`: the rollout, and the parameters and optimiser before the update."""

    def __init__(self, folder: Path):
        self.folder = folder

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        if not report.metrics.get("optim/skipped") or len(list(self.folder.glob("skipped-*"))) >= MOST_DUMPS:
            return
        from safetensors.torch import save_file

        path = self.folder / f"skipped-{report.steps:012d}.safetensors"
        tensors = {f"rollout.{name}": x for name, x in learner.rollout.tensors().items()}
        tensors |= {f"before.{name}": x for name, x in learner.before_update.items()}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            save_file({name: x.cpu().contiguous() for name, x in tensors.items()}, path)
            log.warning("the data of the skipped update is in %s", path)
        except OSError as error:
            log.warning("could not write %s: %s", path, error)
