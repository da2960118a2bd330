"""A policy folder holds a trained policy alone: config.yaml, policy.safetensors and state.json.

It is enough to play, to export and to begin a run with, and small enough to be passed around, above all if its weights are
stored in 16 bits. There is no manifest, hence no checksum: the content of the files is checked when a policy is made from it
(wavedash/runs/content.py).
"""
from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavedash import champions
from wavedash.config import RunConfig
from wavedash.config_file import dump_config
from wavedash.runs.checkpoint import CONFIG, MANIFEST, STATE, USE_ANOTHER, CheckpointError, Tensors, open_plain_file
from wavedash.runs.durable import sync_folder, write_durably
from wavedash.runs.plain import from_json, to_json
from wavedash.runs.store import HIDDEN, tensor_bytes
from wavedash.runs.trust import sign

if TYPE_CHECKING:
    from torch import Tensor

POLICY = "policy.safetensors"
POLICY_FILES = (CONFIG, POLICY, STATE)


@dataclass(frozen=True)
class PolicyFolder:
    """Has the methods of a checkpoint that holds a policy and nothing else."""

    path: Path

    @staticmethod
    def is_one(path: Path) -> bool:
        return all((path / name).is_file() for name in POLICY_FILES) and not (path / MANIFEST).exists()

    @property
    def home(self) -> Path:
        """The folder that everything about it is in: its own."""
        return self.path.absolute()

    @property
    def run_config(self) -> Path:
        return self.path.absolute() / CONFIG

    @property
    def name(self) -> str:
        """Returns what the policy is called among others: the name of the folder, or that of the champion and its steps."""
        path = self.path.absolute()
        return f"{champions.NAME}-{path.name}@{self.step}" if self.ships else path.name

    @property
    def ships(self) -> bool:
        """Whether it is a champion that comes with the package, whose name nobody else has."""
        return self.path.resolve().parent == champions.FOLDER.resolve()

    @property
    def step(self) -> int:
        """The number of steps it was trained for, as its own file says."""
        steps = self.load([])[1].get("steps", 0)
        return steps if isinstance(steps, int) else 0

    def load(self, files: Collection[str] = ("policy",)) -> tuple[Tensors, dict[str, Any]]:
        """Returns tensors by file, on the CPU, and the plain values. Weights that were stored in 16 bits become
        float32."""
        from safetensors import SafetensorError
        from safetensors.torch import load

        try:
            tensors = {file: _in_full(load(self._read(f"{file}.safetensors"))) for file in files}
            state = from_json(self._read(STATE))
        except (SafetensorError, ValueError) as error:
            raise CheckpointError(f"{self.path} holds a file that is not what it should be: {error}; {USE_ANOTHER}") from error
        if not isinstance(state, dict):
            raise CheckpointError(f"{self.path / STATE} holds no table of values; {USE_ANOTHER}")
        return tensors, state

    @property
    def sha256(self) -> str:
        """The checksum of the weights, for whoever keeps it elsewhere."""
        with open_plain_file(self.path / POLICY) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @classmethod
    def write(cls, path: Path, config: RunConfig | None, policy: Mapping[str, Tensor], state: dict[str, Any],
              signed: bool = True) -> PolicyFolder:
        """Returns once a new folder is durable; readers find all of it or nothing. It is this user's own, so code that the
        configuration names is trusted, unless it is not `signed`. Without `config` it can be read, but not be played with.
        CheckpointError: it was not written."""
        temporary = path.with_name(f"{HIDDEN}{path.name}")
        try:
            temporary.mkdir(parents=True, exist_ok=True)
            if config is not None:
                write_durably(temporary / CONFIG, dump_config(config).encode())
            write_durably(temporary / POLICY, tensor_bytes("policy", policy))
            write_durably(temporary / STATE, to_json(state).encode())
            if config is not None and signed:
                sign(temporary, config)
            sync_folder(temporary)
            os.rename(temporary, path)
            sync_folder(path.parent)
        except OSError as error:
            raise CheckpointError(f"{path} was not written: {error.strerror or error}. Make room on that disk, and see that "
                                  "the folder can be written") from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        return cls(path)

    def _read(self, name: str) -> bytes:
        with open_plain_file(self.path / name) as file:
            return file.read()


def _in_full(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    import torch

    return {name: x.float() if x.dtype in (torch.float16, torch.bfloat16) else x for name, x in tensors.items()}
