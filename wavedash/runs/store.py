"""A store is a folder of checkpoints: saving is atomic, and the newest intact one is found whatever happened to the others.

Saving goes through a hidden folder: write and fsync every file, rename, fsync the store, and only then prune. At every instant
the store holds either the checkpoint before or the new one, complete. A step that is saved again gets whichever of the names
`step-N` and `step-N.2` is free, because no system can replace a folder in one move; the older one is then pruned.
"""
from __future__ import annotations

import errno
import hashlib
import itertools
import logging
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavedash.runs.checkpoint import MANIFEST, STATE, Checkpoint, CheckpointError, FileRecord, Manifest, Tensors
from wavedash.runs.durable import FORBIDDEN, sync_folder, write_durably
from wavedash.runs.plain import NotPlainError, to_json

if TYPE_CHECKING:
    from torch import Tensor

HIDDEN = ".tmp-"
SPARE_BYTES = 2**20
"""Space needed besides the tensors: headers, JSON, the file system's own blocks"""

log = logging.getLogger(__name__)


class CheckpointStore:
    """A store may have any number of readers and one writer (the run's lock makes sure of that)."""

    def __init__(self, folder: str | Path, keep: int | None = None) -> None:
        """`keep` is how many of the newest checkpoints stay; None keeps all."""
        self.folder = Path(folder)
        self.keep = keep

    def save(self, step: int, tensors: Tensors, state: dict[str, Any], metadata: dict[str, Any]) -> Path:
        """Returns its path once the checkpoint is durable. CheckpointError: nothing was added, and the others are untouched."""
        earlier = self._earlier()
        latest = earlier[0].manifest.saved_at if earlier else 0
        target = self._free_path(step)
        temporary = self.folder / f"{HIDDEN}{target.name}"  # not beside the target, whose folder may not exist yet
        needed = SPARE_BYTES + sum(tensor.nbytes for content in tensors.values() for tensor in content.values())
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if shutil.disk_usage(self.folder).free < needed:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            temporary.mkdir(exist_ok=True)
            files = {}
            saved_at = max(latest + 1, time.time_ns() // 1_000_000)
            beside = self._files_beside(target, step, saved_at, metadata)
            for name, data in itertools.chain(_serialize(tensors, state), beside.items()):
                write_durably(temporary / name, data)
                files[name] = FileRecord(size=len(data), sha256=hashlib.sha256(data).hexdigest())
            manifest = Manifest(step=step, saved_at=saved_at, files=files, metadata=metadata)
            write_durably(temporary / MANIFEST, manifest.to_bytes())
            sync_folder(temporary)
            target.parent.mkdir(exist_ok=True)
            os.rename(temporary, target)
            for folder in dict.fromkeys([target.parent, self.folder]):
                sync_folder(folder)
        except OSError as error:
            raise CheckpointError(self._explain(step, needed, error)) from error
        except NotPlainError as error:
            raise CheckpointError(f"step {step:,} was not saved: {error}") from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        self._finish(Checkpoint(target, manifest), earlier)
        return target

    def newest(self) -> Checkpoint | None:
        """Returns the newest checkpoint whose every byte is right, and logs which ones were skipped and why."""
        checkpoints, broken = self._open_all()
        for error in broken:
            log.warning("skipped: %s", error)
        for checkpoint in checkpoints:
            try:
                checkpoint.verify()
                return checkpoint
            except CheckpointError as error:
                log.warning("skipped: %s", error)
        return None

    def latest(self) -> Checkpoint | None:
        """Returns the newest checkpoint by its manifest alone, which is fast; its files may be damaged."""
        checkpoints, _ = self._open_all()
        return checkpoints[0] if checkpoints else None

    def all(self) -> list[Checkpoint]:
        """Returns all checkpoints by their manifests, the last saved first. CheckpointError: one of them cannot be read."""
        checkpoints, broken = self._open_all()
        if broken:
            raise broken[0]
        return checkpoints

    def sweep(self) -> None:
        """Removes what a killed process left half written. Only the writer may call it: a save may be in progress."""
        for path in self.folder.glob(f"{HIDDEN}*"):
            shutil.rmtree(path, ignore_errors=True)

    def _open_all(self, paths: Sequence[Path] | None = None) -> tuple[list[Checkpoint], list[CheckpointError]]:
        """Returns the checkpoints, or those of `paths`, the last saved first, and the errors of broken ones. The time of saving
        counts, not the step: a run may have been resumed from an earlier step."""
        checkpoints, broken = [], []
        for path in self._paths() if paths is None else paths:
            try:
                checkpoints.append(Checkpoint.open(path))
            except CheckpointError as error:
                broken.append(error)
        checkpoints.sort(key=lambda checkpoint: checkpoint.manifest.saved_at, reverse=True)
        return checkpoints, broken

    # --- what kinds of stores differ in --------------------------------------------------------------------------------

    def _paths(self) -> list[Path]:
        """Returns the folders that are checkpoints by their names, whole or not."""
        return [path for path in sorted(self.folder.glob("step-*")) if path.is_dir() and not path.is_symlink()]

    def _path_of(self, step: int) -> Path:
        """Returns where the state of this step is saved."""
        return self.folder / f"step-{step:012d}"

    def _files_beside(self, target: Path, step: int, saved_at: int, metadata: Mapping[str, Any]) -> Mapping[str, bytes]:
        """Returns files that are written beside tensors and state."""
        return {}

    def _earlier(self) -> list[Checkpoint]:
        """Returns the checkpoints that a save has to know of, the last saved first."""
        return self._open_all()[0]

    def _finish(self, saved: Checkpoint, earlier: list[Checkpoint]) -> None:
        """Is called once a checkpoint is durable: removes the older ones that need not stay."""
        same = [checkpoint for checkpoint in earlier if checkpoint.step == saved.step]
        others = [checkpoint for checkpoint in earlier if checkpoint.step != saved.step]
        too_many = others[self.keep - 1:] if self.keep is not None else []
        self._remove(same + too_many)

    # -------------------------------------------------------------------------------------------------------------------

    def _free_path(self, step: int) -> Path:
        plain = self._path_of(step)
        again = (plain.with_name(f"{plain.name}.{number}") for number in itertools.count(2))
        return next(path for path in itertools.chain([plain], again) if not os.path.lexists(path))

    def _remove(self, checkpoints: list[Checkpoint]) -> None:
        for checkpoint in checkpoints:
            hidden = self.folder / f"{HIDDEN}{checkpoint.path.name}"
            try:
                os.rename(checkpoint.path, hidden)  # hidden in one move: a kill must not leave half a checkpoint
                shutil.rmtree(hidden)
            except OSError as error:
                log.warning("could not remove the old checkpoint %s: %s", checkpoint.path, error.strerror)

    def _explain(self, step: int, needed: int, error: OSError) -> str:
        try:
            free = f"{shutil.disk_usage(self.folder).free / 2**20:,.1f} MiB"
        except OSError:
            free = "an unknown amount"
        advice = "See that the folder can be written" if error.errno in FORBIDDEN else (
            "Make room on that disk, or lower checkpoint.keep and resume")
        return (f"step {step:,} was not saved into {self.folder}: {error.strerror or error} ({needed / 2**20:,.1f} MiB needed, "
                f"{free} free). Earlier checkpoints are untouched. {advice}")


def _serialize(tensors: Tensors, state: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yields file by file, so that only one at a time is in memory twice."""
    for file, content in tensors.items():
        if not re.fullmatch(r"[A-Za-z0-9_-]+", file):
            raise CheckpointError(f"{file!r} cannot name a file of tensors: use letters, digits, - and _")
        yield f"{file}.safetensors", tensor_bytes(file, content)
    yield STATE, to_json(state).encode()


def tensor_bytes(file: str, content: Mapping[str, Tensor]) -> bytes:
    """The tensors as a file of safetensors. CheckpointError: they cannot be one; `file` names them."""
    import torch
    from safetensors.torch import save

    try:
        # safetensors refuses tensors that share memory (views of one buffer, tied weights), so each is copied.
        return save({name: tensor.detach().to("cpu", memory_format=torch.contiguous_format, copy=True)
                     for name, tensor in content.items()})
    except (RuntimeError, ValueError, KeyError) as error:
        raise CheckpointError(f"the tensors of {file!r} cannot be saved: {error}") from error
