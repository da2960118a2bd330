"""A folder outside a run that stands for one of its checkpoints, as rlgym-ppo's numbered folders do.

`wavedash.json` in it says which: the run's folder, relative to this one, the checkpoint in it, and the SHA-256 of the files
that were written with it. Where one of them has been changed since, the folder speaks for itself and points to nothing.
"""
from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from wavedash.runs.checkpoint import Checkpoint, CheckpointError
from wavedash.runs.plain import from_json, to_json

POINTER = "wavedash.json"
LARGEST = 2**16


class DanglingError(CheckpointError):
    """What the folder points to is not there any more, or the folder is not what it was."""


def pointer_bytes(target: Path, checkpoint: Checkpoint, files: dict[str, bytes]) -> bytes:
    """What goes into the folder `target` beside `files`."""
    run = checkpoint.path.absolute().parent.parent
    return to_json({
        "run": Path(os.path.relpath(run, target.absolute())).as_posix(),
        "checkpoint": f"{checkpoint.path.parent.name}/{checkpoint.path.name}",
        "saved_at": checkpoint.manifest.saved_at,
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }).encode()


def is_pointer(folder: Path) -> bool:
    return (folder / POINTER).is_file()


def saved_at(folder: Path) -> int:
    """When what it stands for was saved; 0 if it does not tell."""
    try:
        return int(_read(folder)["saved_at"])  # type: ignore[call-overload]
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def follow(folder: Path) -> Checkpoint:
    """The checkpoint that the folder stands for."""
    try:
        told = _read(folder)
        for name, sha256 in told["files"].items():  # type: ignore[attr-defined]
            if hashlib.sha256((folder / Path(name).name).read_bytes()).hexdigest() != sha256:
                raise DanglingError(f"{folder / name} has been changed since it was saved")
        checkpoint = Checkpoint.open(Path(os.path.normpath(folder / str(told["run"]) / str(told["checkpoint"]))))
        if checkpoint.manifest.saved_at != told["saved_at"]:
            raise DanglingError(f"{checkpoint.path} is another one than {folder} was saved with")
    except DanglingError:
        raise
    except (CheckpointError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DanglingError(f"the run that {folder} belongs to cannot be read ({error})") from error
    return checkpoint


def newest_pointer(folders: Sequence[Path]) -> Path | None:
    """Of folders named by a number of steps, the one that was saved last."""
    found = [folder for folder in folders if folder.name.isdecimal() and is_pointer(folder)]
    return max(found, key=saved_at, default=None)


def _read(folder: Path) -> dict[str, object]:
    with open(folder / POINTER, "rb") as file:
        told = from_json(file.read(LARGEST))
    return dict(told)
