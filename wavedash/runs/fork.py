"""A fork is a new run that goes on from a milestone of another one, as if nothing had come after it.

The other run stays as it is, with all of its later checkpoints, and may even be training. The fork has a folder of its own,
which begins with what the run had at the milestone: the checkpoint itself, metrics and curves, changes, games, the policies
of its league. Files that grow are copied whole; the listeners that write them cut them back to the step of the checkpoint, as
they do after a kill. `config.yaml` is written last, at the start of the run: until then the folder is no run to anybody.
"""
from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wavedash.config import RunConfig
from wavedash.runs.checkpoint import MILESTONES
from wavedash.runs.durable import remedy, write_durably
from wavedash.runs.events import EventsFile
from wavedash.runs.find import Fork
from wavedash.runs.folder import ASKED, RunError, RunFolder
from wavedash.runs.links import refuse_links
from wavedash.runs.plain import from_json, to_json
from wavedash.runs.store import HIDDEN

FORKED = "forked.json"
"""Says where a run came from, without the path of any machine"""


def fork(found: Fork, config: RunConfig) -> RunFolder:
    """Makes the folder of a new run that goes on from the milestone. It is beside the other run's. UserError: it cannot be
    made, and nothing is left of it."""
    origin, checkpoint = found
    refuse_links(origin.path)
    beside = origin.path.absolute().parent
    run = RunFolder.create(config.name, beside.parent if beside.name == config.name else None)
    try:
        for name in _carried(config):
            _copy(origin.path / name, run.path / name)
        EventsFile(origin.events).copy_until(run.events, checkpoint.step, checkpoint.manifest.saved_at)
        write_durably(run.path / FORKED, to_json({
            "run": f"{beside.name}/{origin.path.name}",
            "milestone": checkpoint.path.absolute().relative_to(checkpoint.home / MILESTONES).as_posix(),
            "steps": checkpoint.step}).encode())
        run.store("checkpoints").save(checkpoint.step, *checkpoint.load(), dict(checkpoint.metadata))
    except OSError as error:
        shutil.rmtree(run.path, ignore_errors=True)
        raise RunError(f"cannot copy {origin.path} into a new run folder: {error.strerror or error}; "
                       f"{remedy(error)}") from error
    except BaseException:
        shutil.rmtree(run.path, ignore_errors=True)
        raise
    return run


def origin_of(run: RunFolder) -> dict[str, Any] | None:
    """Returns where a run came from: `run`, `milestone`, `steps`. None: it began by itself, or the file cannot be read."""
    try:
        origin = from_json((run.path / FORKED).read_bytes())
        found = {"run": str(origin["run"]), "milestone": str(origin["milestone"]), "steps": int(origin["steps"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    # A text from somebody else's folder must not control the terminal.
    return found if all(re.fullmatch(r"[\w .+/-]{1,200}", str(value)) for value in found.values()) else None


def _carried(config: RunConfig) -> Iterator[str]:
    """Yields what the new run goes on with besides the checkpoint. What nobody would cut back is left out."""
    yield "metrics.jsonl"
    yield ASKED
    if config.report.tensorboard:
        yield "tb"
    if config.rating is not None:
        yield "games.csv"
    if config.opponents is not None:
        yield "league"
    if config.distill is not None:
        yield "teacher"
    if config.prior is not None:
        yield "prior"


def _copy(source: Path, target: Path) -> None:
    """Copies a file, or a folder of files and folders, if it is there."""
    if source.is_file():
        shutil.copyfile(source, target)
    elif source.is_dir():
        target.mkdir()
        for entry in sorted(source.iterdir()):
            if not entry.name.startswith(HIDDEN):
                _copy_entry(entry, target / entry.name)


def _copy_entry(source: Path, target: Path) -> None:
    """Copies a policy of the league or a file. If the other run removes it meanwhile, it is left out: no milestone names it, or
    it would not be removed."""
    try:
        shutil.copytree(source, target) if source.is_dir() else shutil.copyfile(source, target)
    except OSError:
        if source.exists():
            raise
        shutil.rmtree(target, ignore_errors=True)
