"""Where checkpoints are: runs of ours, and folders as rlgym-ppo writes them (`<run>-<time>/<timesteps>/PPO_POLICY.pt`)."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from wavedash.runs.checkpoint import MANIFEST
from wavedash.runs.folder import RunFolder

POLICY_FILE = "PPO_POLICY.pt"


def latest_checkpoint(base: Path, stamped: bool) -> Path | None:
    """The newest one of the newest run that has one. `stamped`: runs are `<base>-<time>`, else there is only `base`."""
    return next((found for run in _runs(base, stamped) if (found := checkpoint_in(run))), None)


def checkpoint_in(folder: Path) -> Path | None:
    """The folder itself if it is a checkpoint, else the newest checkpoint in it."""
    if (folder / MANIFEST).is_file() or (folder / POLICY_FILE).is_file():
        return folder
    if RunFolder.is_run(folder) and (newest := RunFolder(folder).newest()):
        return newest.path
    theirs = [path for path in folder.glob("*") if path.name.isdecimal() and (path / POLICY_FILE).is_file()]
    return max(theirs, key=lambda path: int(path.name), default=None)


def _runs(base: Path, stamped: bool) -> Iterator[Path]:
    if not stamped:
        yield base
        return
    stamps = {path: path.name.removeprefix(f"{base.name}-") for path in base.parent.glob(f"{base.name}-*") if path.is_dir()}
    yield from sorted((path for path, stamp in stamps.items() if stamp.isdecimal()), key=lambda path: -int(stamps[path]))
