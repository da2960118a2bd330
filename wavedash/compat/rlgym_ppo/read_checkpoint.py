"""`python -m wavedash.compat.rlgym_ppo.read_checkpoint FOLDER OUTPUT`: the tensors of an rlgym-ppo checkpoint as safetensors.

Its files are pickles, which can be made to run code. So they are read in a process of their own, by the reader of torch that
makes only tensors and plain containers (`weights_only=True`). What that reader refuses is refused.
"""
from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

FILES = {
    "policy": "PPO_POLICY.pt",
    "value": "PPO_VALUE_NET.pt",
    "policy_optimizer": "PPO_POLICY_OPTIMIZER.pt",
    "value_optimizer": "PPO_VALUE_NET_OPTIMIZER.pt",
}
LARGEST_BYTES = 4 * 2**30
"""The largest unpacked size. The networks of the largest known bots have a hundredth of it."""


def main(folder: Path, output: Path) -> None:
    tensors: dict[str, Tensor] = {}
    for name, file in FILES.items():
        if not (folder / file).exists() and name.endswith("_optimizer"):
            continue
        try:
            tensors |= {f"{name}.{key}": x.contiguous().clone() for key, x in _tensors(_read(folder / file))}
        except Exception as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise ValueError(f"{file}: {reason}") from error
    save_file(tensors, output)


def _read(path: Path) -> Any:
    size = path.stat().st_size
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    if size > LARGEST_BYTES:
        raise ValueError(f"it unpacks to {size / 2**30:.1f} GiB")
    return torch.load(path, map_location="cpu", weights_only=True)


def _tensors(content: Any, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yields the tensors in nested dictionaries, by their keys joined with dots."""
    if not isinstance(content, dict):
        raise ValueError(f"it holds a {type(content).__name__}, not a dictionary of tensors")
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _tensors(value, f"{prefix}{key}.")
        elif isinstance(value, Tensor):
            if value.nbytes > value.untyped_storage().nbytes():  # a small file may claim a tensor of any size
                raise ValueError(f"{prefix}{key} is larger than its data")
            yield f"{prefix}{key}", value


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
