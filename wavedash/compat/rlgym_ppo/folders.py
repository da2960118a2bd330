"""Finds checkpoints in folders as rlgym-ppo writes them (`<run>-<time>/<timesteps>/PPO_POLICY.pt`), and in our own run folders.

A folder of the first kind that Wavedash wrote stands for a checkpoint in a run folder, see `runs/pointer.py`.
"""
from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

from wavedash.runs.checkpoint import MANIFEST, CheckpointError
from wavedash.runs.folder import RunFolder
from wavedash.runs.pointer import DanglingError, follow, is_pointer

log = logging.getLogger(__name__)

POLICY_FILE = "PPO_POLICY.pt"
BOOK = "BOOK_KEEPING_VARS.json"


def latest_checkpoint(base: Path, stamped: bool) -> Path | None:
    """Returns the newest checkpoint of the newest run that has one. Runs are `<base>-<time>` if `stamped`; otherwise there is
    only `base`."""
    return next((found for run in _runs(base, stamped) if (found := checkpoint_in(run))), None)


def checkpoint_in(folder: Path) -> Path | None:
    """Returns the folder itself if it is a checkpoint, else the newest checkpoint in it."""
    if (folder / MANIFEST).is_file() or (folder / POLICY_FILE).is_file():
        return folder
    if RunFolder.is_run(folder) and (newest := RunFolder(folder).newest()):
        return newest.path
    theirs = [path for path in folder.glob("*") if path.name.isdecimal() and (path / POLICY_FILE).is_file()]
    return max(theirs, key=lambda path: int(path.name), default=None)


def own_checkpoint(folder: Path) -> Path | None:
    """Returns our own checkpoint that a folder is or stands for; None where there are only rlgym-ppo's files."""
    if (folder / MANIFEST).is_file():
        return folder
    if not is_pointer(folder):
        return None
    try:
        checkpoint = follow(folder)
        steps = json.loads((folder / BOOK).read_text(encoding="utf-8"))["cumulative_timesteps"]
        if steps != checkpoint.step:
            raise DanglingError(f"{folder / BOOK} has been changed since it was saved: {steps} timesteps, not "
                                f"{checkpoint.step}")
        checkpoint.verify()
    except (CheckpointError, OSError, ValueError, KeyError, TypeError) as error:
        log.warning("%s. So %s is taken as it is, with what rlgym-ppo saves: networks, optimisers, statistics and counters, "
                    "without the unfinished episodes", error, folder)
        return None
    return checkpoint.path


def _runs(base: Path, stamped: bool) -> Iterator[Path]:
    if not stamped:
        yield base
        return
    stamps = {path: path.name.removeprefix(f"{base.name}-") for path in base.parent.glob(f"{base.name}-*") if path.is_dir()}
    yield from sorted((path for path, stamp in stamps.items() if stamp.isdecimal()), key=lambda path: -int(stamps[path]))
