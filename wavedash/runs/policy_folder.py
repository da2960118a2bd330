"""A policy folder holds a trained policy alone: config.yaml, policy.safetensors and state.json.

It is enough to play, to export and to begin a run with, and small enough to be passed around, above all if its weights are
stored in 16 bits. There is no manifest, hence no checksum: the content of the files is checked when a policy is made from it
(wavedash/runs/content.py).
"""
from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavedash import champions
from wavedash.runs.checkpoint import MANIFEST, STATE, USE_ANOTHER, CheckpointError, Tensors, open_plain_file
from wavedash.runs.plain import from_json

if TYPE_CHECKING:
    from torch import Tensor

POLICY = "policy.safetensors"
CONFIG = "config.yaml"


@dataclass(frozen=True)
class PolicyFolder:
    """Has the methods of a checkpoint that holds a policy and nothing else."""

    path: Path

    @staticmethod
    def is_one(path: Path) -> bool:
        return all((path / name).is_file() for name in (CONFIG, POLICY, STATE)) and not (path / MANIFEST).exists()

    @property
    def run_config(self) -> Path:
        return self.path.absolute() / CONFIG

    @property
    def name(self) -> str:
        """What the policy is called among others: the name of the folder, or that of the champion and its steps."""
        path = self.path.absolute()
        return f"{champions.NAME}-{path.name}@{self.step}" if path.parent == champions.FOLDER else path.name

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

    def _read(self, name: str) -> bytes:
        with open_plain_file(self.path / name) as file:
            return file.read()


def _in_full(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    import torch

    return {name: x.float() if x.dtype in (torch.float16, torch.bfloat16) else x for name, x in tensors.items()}
