"""The pool: the policies of a league on disk, one policy folder each in `league/` of the run folder.

Any of them can be played with: `wavedash eval RUN --against RUN/league/step-000025000000`. A policy stays on disk as long as
the league or a checkpoint names it, so that the run can be resumed from every checkpoint that is kept; `collect` removes the
others.
"""
from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

from torch import Tensor

from wavedash.config import RunConfig
from wavedash.errors import UserError
from wavedash.league.members import SAVED_AS
from wavedash.runs.checkpoint import CheckpointError
from wavedash.runs.content import reading
from wavedash.runs.folder import STORES, RunFolder
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.runs.store import HIDDEN, tensor_bytes

log = logging.getLogger(__name__)


class Pool:
    """The folder `league/` of one run, whose lock this process holds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, name: str, config: RunConfig, policy: Mapping[str, Tensor], state: dict[str, Any]) -> str:
        """Writes a policy and returns its name: `name`, or `name.2` where a checkpoint still needs another policy of that name.
        The same policy is not written twice. CheckpointError: nothing was added."""
        sha256 = hashlib.sha256(tensor_bytes("policy", policy)).hexdigest()
        for free in chain([name], (f"{name}.{number}" for number in count(2))):
            if not os.path.lexists(self.folder / free):
                break
            if PolicyFolder.is_one(self.folder / free) and self.sha256(free) == sha256:
                return free  # a resumed run comes by here again
        # A policy plays; whom its run played against does not matter, and code named there must not need trust.
        PolicyFolder.write(self.folder / free, config.model_copy(update={"opponents": None}), policy, state)
        return free

    def read(self, name: str) -> dict[str, Tensor]:
        """The weights of a member. CheckpointError: they cannot be read."""
        return PolicyFolder(self.folder / name).load()[0]["policy"]

    def sha256(self, name: str) -> str:
        return PolicyFolder(self.folder / name).sha256

    def check(self, members: Mapping[str, str]) -> None:
        """Raises UserError unless the policies of these names are there, with these checksums of their weights."""
        wrong = []
        for name, sha256 in members.items():
            try:
                if not PolicyFolder.is_one(self.folder / name):
                    wrong.append(f"{name} is missing")
                elif self.sha256(name) != sha256:
                    wrong.append(f"{name} is damaged (its SHA-256 is not the one in the checkpoint)")
            except CheckpointError as error:
                wrong.append(str(error))
        if wrong:
            raise UserError(f"the league of this checkpoint cannot go on: in {self.folder}, {'; '.join(wrong)}. Copy it again "
                            "from where the run came, resume from another checkpoint, or delete the whole folder "
                            f"{self.folder.name}/ to begin the league anew")

    def names(self) -> list[str]:
        """Lists what is on disk, whether or not anybody names it."""
        return sorted(path.name for path in self.folder.glob("*") if PolicyFolder.is_one(path))

    def collect(self, named: Collection[str]) -> None:
        """Removes the policies that are not among `named`, and what a killed process left half written."""
        for path in self.folder.glob(f"{HIDDEN}*"):
            shutil.rmtree(path, ignore_errors=True)
        for name in set(self.names()) - set(named):
            hidden = self.folder / f"{HIDDEN}{name}"
            try:
                os.rename(self.folder / name, hidden)  # hidden in one move: a kill must not leave half a policy
                shutil.rmtree(hidden)
            except OSError as error:
                log.warning("could not remove the old policy %s: %s", self.folder / name, error.strerror or error)


def thinned(steps: Sequence[int], most: int) -> list[int]:
    """Which of the snapshots at these increasing steps stay if there may be `most` (2 or more), as indices. The first and the
    last always stay. Of the others the one whose neighbours are closest to each other goes, again and again. So no gap gets
    longer than 2 / (most - 1) of the whole history, or than one between two snapshots that were taken one after the other."""
    kept = list(range(len(steps)))
    while len(kept) > most:
        span = [steps[after] - steps[before] for before, after in zip(kept[:-2], kept[2:], strict=True)]
        del kept[1 + span.index(min(span))]
    return kept


def named_by_checkpoints(run: RunFolder) -> set[str]:
    """The policies that the checkpoints of a run name. CheckpointError: one of them cannot be read."""
    named: set[str] = set()
    for store in STORES:
        for checkpoint in run.store(store).all():
            with reading(checkpoint):
                saved = checkpoint.load([])[1].get("listeners", {}).get(SAVED_AS, {})
                named |= {member["name"] for member in saved.get("members", [])}
    return named
