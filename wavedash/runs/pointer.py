"""A pointer is a folder outside a run that stands for one of its checkpoints, like rlgym-ppo's numbered folders.

`wavedash.json` in it says which: the run's folder, relative to this one, the checkpoint in it, and the SHA-256 of the files
that were written with it. If one of these files was changed since, the folder points to nothing.
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
    """The checkpoint that the folder points to is not there any more, or files of the folder were changed."""


def pointer_bytes(target: Path, checkpoint: Checkpoint, files: dict[str, bytes]) -> bytes:
    """Returns the content of `wavedash.json` for the folder `target`, which will hold `files` too."""
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
    """Returns when the checkpoint was saved that the folder stands for; 0 if it does not say."""
    try:
        return int(_read(folder)["saved_at"])  # type: ignore[call-overload]
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def follow(folder: Path) -> Checkpoint:
    """Returns the checkpoint that the folder stands for."""
    try:
        content = _read(folder)
        for name, sha256 in content["files"].items():  # type: ignore[attr-defined]
            if hashlib.sha256((folder / Path(name).name).read_bytes()).hexdigest() != sha256:
                raise DanglingError(f"{folder / name} has been changed since it was saved")
        checkpoint = Checkpoint.open(Path(os.path.normpath(folder / str(content["run"]) / str(content["checkpoint"]))))
        if checkpoint.manifest.saved_at != content["saved_at"]:
            raise DanglingError(f"{checkpoint.path} is another one than {folder} was saved with")
    except DanglingError:
        raise
    except (CheckpointError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DanglingError(f"the run that {folder} belongs to cannot be read ({error})") from error
    return checkpoint


def newest_pointer(folders: Sequence[Path]) -> Path | None:
    """Returns the folder that was saved last, of those named by a number of steps."""
    found = [folder for folder in folders if folder.name.isdecimal() and is_pointer(folder)]
    return max(found, key=saved_at, default=None)


def _read(folder: Path) -> dict[str, object]:
    with open(folder / POINTER, "rb") as file:
        return dict(from_json(file.read(LARGEST)))
