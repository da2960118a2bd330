"""One checkpoint on disk, which is read without trusting it.

    step-000000123456/
      manifest.json            format, step, time, size and SHA-256 of every file, metadata; protected by a SHA-256 of its own
      policy.safetensors ...   tensors, one file each for policy, optimizer, learner, env, buffer and listeners
      state.json               plain values

Nothing here can run code: safetensors and JSON hold data only. A file is read only if the manifest names it, once, and is
parsed only after its SHA-256 was found right (safetensors itself loads a flipped bit without an error).
"""
from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from wavedash.errors import UserError
from wavedash.runs.plain import from_json, to_json

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1
"""The version of the format. It increases when the meaning of the files changes; a reader refuses what is newer than it
knows."""
MANIFEST = "manifest.json"
CONFIG = "config.yaml"
MILESTONES = "milestones"
"""The store of a run whose checkpoints are milestones; see milestones.py"""
STATE = "state.json"
LARGEST_MANIFEST = 16 * 2**20

Tensors = dict[str, dict[str, "Tensor"]]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+\.(safetensors|json|yaml)$")]
"""A name without folders, so that no manifest can point outside its own checkpoint."""
Count = Annotated[int, Field(ge=0)]


class CheckpointError(UserError):
    """A checkpoint cannot be written or must not be read; the message names the cause and the next step."""


class _Record(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class FileRecord(_Record):
    """Size and checksum that a file must have."""

    size: Count
    sha256: str


class _KnownMetadata(_Record):
    """The entries of `Manifest.metadata` that are read here; there may be others."""

    exact: bool = True
    iteration: Count = 0
    metrics: dict[str, float] = {}
    figures: dict[str, float] = {}
    """The name of `metrics` in older checkpoints"""
    rating: dict[str, float] = {}
    """The last rating that was known, in runs with milestones: `elo`, `low`, `high`, and the `steps` it was played at"""


class Manifest(_Record):
    """The content of `manifest.json`, without its own checksum."""

    format: Count = FORMAT
    step: Count
    saved_at: Count
    """Milliseconds since 1970; always later than every checkpoint in the store, even where the clock was set back."""
    files: dict[FileName, FileRecord]
    metadata: dict[str, Any]

    @field_validator("metadata")
    @classmethod
    def _check_known_metadata(cls, metadata: dict[str, Any]) -> dict[str, Any]:
        _KnownMetadata.model_validate(metadata)
        return metadata

    def to_bytes(self) -> bytes:
        content = self.model_dump()
        return to_json({**content, "sha256": _checksum(content)}).encode()


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose manifest is valid. Its files are checked by `verify`, and by `load` before they are used."""

    path: Path
    manifest: Manifest

    @property
    def step(self) -> int:
        return self.manifest.step

    @property
    def metadata(self) -> dict[str, Any]:
        return self.manifest.metadata

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of the iteration after which it was saved."""
        found: dict[str, float] = self.metadata.get("metrics", self.metadata.get("figures", {}))
        return found

    @property
    def home(self) -> Path:
        """The run folder, if the checkpoint is still inside of it: the folder above its store. Between a milestone and its
        store there may be the folder of a phase."""
        store, above = self.path.absolute().parents[:2]
        return above.parent if above.name == MILESTONES else store.parent

    @property
    def run_config(self) -> Path:
        """The path of the configuration that it was trained with: its own, which milestones have, else that of its run, if the
        checkpoint is still inside the run folder."""
        own = self.path.absolute() / CONFIG
        return own if CONFIG in self.manifest.files else self.home / CONFIG

    @classmethod
    def open(cls, path: str | Path) -> Checkpoint:
        path = Path(path)
        with open_plain_file(path / MANIFEST) as file:
            data = file.read(LARGEST_MANIFEST)
        try:
            content = from_json(data)
            sound = content.pop("sha256") == _checksum(content)
        except (ValueError, AttributeError, TypeError, KeyError) as error:
            raise CheckpointError(f"{path / MANIFEST} is damaged ({error}); {USE_ANOTHER}") from error
        # The checksum comes before the version: a flipped bit must not be taken for a newer format.
        if not sound:
            raise CheckpointError(f"{path / MANIFEST} is damaged (its checksum is wrong); {USE_ANOTHER}")
        version = content.get("format")
        if isinstance(version, int) and version > FORMAT:
            raise CheckpointError(f"{path} has format {version}, this version of Wavedash reads up to {FORMAT}; "
                                  "upgrade with: pip install -U wavedash")
        try:
            return cls(path, Manifest.model_validate(content))
        except ValidationError as error:
            raise CheckpointError(f"{path / MANIFEST} does not describe a checkpoint: {error}; {USE_ANOTHER}") from error

    def verify(self) -> None:
        """Raises CheckpointError unless every file is exactly as it was written."""
        for name, record in self.manifest.files.items():
            with open_plain_file(self.path / name, record.size) as file:
                self._compare(name, hashlib.file_digest(file, "sha256").hexdigest())

    def load(self, files: Collection[str] | None = None) -> tuple[Tensors, dict[str, Any]]:
        """Returns tensors by file, on the CPU, and the plain values. `files` limits the tensors, for instance `["policy"]`."""
        from safetensors import SafetensorError
        from safetensors.torch import load

        if files is None:
            files = [name.removesuffix(".safetensors") for name in self.manifest.files if name.endswith(".safetensors")]
        try:
            tensors = {file: load(self._read(f"{file}.safetensors")) for file in files}
            state = from_json(self._read(STATE))
        except (SafetensorError, ValueError) as error:
            raise CheckpointError(f"{self.path} holds a file that is not what it should be: {error}; {USE_ANOTHER}") from error
        return tensors, state

    def _read(self, name: str) -> bytes:
        record = self.manifest.files.get(name)
        if record is None:
            present = ", ".join(sorted(self.manifest.files))
            raise CheckpointError(f"{self.path} has no {name}: it holds {present}; {USE_ANOTHER}")
        with open_plain_file(self.path / name, record.size) as file:
            data = file.read(record.size)
        self._compare(name, hashlib.sha256(data).hexdigest())
        return data

    def _compare(self, name: str, sha256: str) -> None:
        if sha256 != self.manifest.files[name].sha256:
            raise CheckpointError(f"{self.path / name} is damaged (its SHA-256 is not the one in the manifest); {USE_ANOTHER}")


USE_ANOTHER = "use another checkpoint, or copy this one again from where it came"


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(to_json(content).encode()).hexdigest()


def open_plain_file(path: Path, size: int | None = None) -> BufferedReader:
    """Opens a file for reading. It refuses links (they could lead outside), pipes (they would block) and the wrong size."""
    try:
        facts = os.lstat(path)
        if not stat.S_ISREG(facts.st_mode):
            raise CheckpointError(f"{path} is not a plain file; {USE_ANOTHER}")
        if size is not None and facts.st_size != size:
            raise CheckpointError(f"{path} is damaged ({facts.st_size:,} bytes, the manifest says {size:,}); {USE_ANOTHER}")
        return open(path, "rb")
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}; {USE_ANOTHER}") from error
