"""A trained policy on its own: config.yaml, policy.safetensors and state.json in one folder, without the rest of a checkpoint.

It is enough to play and to export, and small enough to be passed around. There is no manifest, hence no checksum: what is in
the files is checked where a policy is made from it (wavedash/runs/content.py).
"""
from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wavedash.runs.checkpoint import MANIFEST, STATE, USE_ANOTHER, CheckpointError, Tensors, plain_file
from wavedash.runs.plain import from_json

POLICY = "policy.safetensors"
CONFIG = "config.yaml"


@dataclass(frozen=True)
class PolicyFolder:
    """Read like a checkpoint that has a policy and nothing else."""

    path: Path

    @staticmethod
    def is_one(path: Path) -> bool:
        return all((path / name).is_file() for name in (CONFIG, POLICY, STATE)) and not (path / MANIFEST).exists()

    @property
    def run_config(self) -> Path:
        return self.path.absolute() / CONFIG

    @property
    def step(self) -> int:
        """How many steps it was trained for, as it says itself."""
        steps = self.load([])[1].get("steps", 0)
        return steps if isinstance(steps, int) else 0

    def load(self, groups: Collection[str] = ("policy",)) -> tuple[Tensors, dict[str, Any]]:
        """The tensors, on the CPU, and the plain values."""
        from safetensors import SafetensorError
        from safetensors.torch import load

        try:
            tensors = {group: load(self._read(f"{group}.safetensors")) for group in groups}
            state = from_json(self._read(STATE))
        except (SafetensorError, ValueError) as error:
            raise CheckpointError(f"{self.path} holds a file that is not what it should be: {error}; {USE_ANOTHER}") from error
        if not isinstance(state, dict):
            raise CheckpointError(f"{self.path / STATE} holds no table of values; {USE_ANOTHER}")
        return tensors, state

    def _read(self, name: str) -> bytes:
        with plain_file(self.path / name) as file:
            return file.read()
