"""The library knows the runs and recordings that there are, and gives each an id.

Clients name things by id alone. An id is a hash of where a thing was found; it is looked up in tables that were made by looking
into the folders, so no text of a client ever becomes a path. Folders are looked at again at most once a second, and only where
something has changed.
"""
from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from wavedash.errors import UserError
from wavedash.runs.checkpoint import MANIFEST
from wavedash.runs.find import runs_under
from wavedash.runs.folder import RunFolder, runs_root
from wavedash.runs.links import is_plain
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.web.run import Run

RECORDINGS = "recordings"
OFTEN = 1.0
"""Seconds between two looks at the folders"""

READ = ("config.yaml", "metrics.jsonl", "events.jsonl", "games.csv", ".lock-holder.json")
"""Files of a run that are read by name"""


class UnknownError(UserError):
    """A client has named something that is not there."""


@dataclass(frozen=True)
class RecordingFile:
    """A file with a recording."""

    id: str
    path: Path
    run: str | None


class Library:
    """Everything that the page can show. All methods may be called from any thread."""

    def __init__(self, root: Path | None = None, extra: Path | None = None, trust: bool = False) -> None:
        """`extra`: a run folder outside of the root. `trust`: policies of runs that name somebody else's code may play."""
        self.root, self.trust = (root or runs_root()).absolute(), trust
        self.extra = [] if extra is None else [extra.absolute()]
        """Run folders outside of the root"""
        self._lock, self._at = Lock(), float("-inf")
        self._runs: dict[str, Run] = {}
        self._recordings: dict[str, RecordingFile] = {}

    # --- runs --------------------------------------------------------------------------------------------------------

    def runs(self) -> list[Run]:
        """All runs, the one that was written to last first."""
        self._look()
        return list(self._runs.values())

    def run(self, id: str) -> Run:
        """UnknownError: there is no such run."""
        self._look()
        try:
            return self._runs[id]
        except KeyError:
            raise UnknownError("there is no such run; it may have been deleted") from None

    def run_at(self, path: Path) -> Run | None:
        """The run in this folder."""
        return next((run for run in self.runs() if run.folder.path.absolute() == path.absolute()), None)

    def _look(self) -> None:
        with self._lock:
            if time.monotonic() - self._at < OFTEN:
                return
            found = {}
            for path in self._folders():
                id = self.id_of(path)
                found[id] = self._runs.get(id) or Run(id, RunFolder(path), "/".join(path.parts[-2:]))
            self._runs = found
            self._recordings = {file.id: file for file in self._find_recordings()}
            self._at = time.monotonic()

    def _folders(self) -> list[Path]:
        configs = [*found_in(self.root, "*/config.yaml"), *found_in(self.root, "*/*/config.yaml")]
        folders = [config.parent for config in configs if _inside(config.parent, self.root) and RunFolder.is_run(config.parent)]
        folders += [path for path in self.extra if path not in folders and RunFolder.is_run(path)]
        return sorted(filter(_is_ordinary, folders), key=_written, reverse=True)

    def id_of(self, path: Path) -> str:
        """Names a path: relative to the root where it is inside, so that the root may be moved."""
        inside = path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.absolute().as_posix()
        return hashed(inside)

    def run_named(self, path: Path) -> Run | None:
        """The run in a folder, or the newest one in a folder of runs. None: there is none."""
        if not RunFolder.is_run(path):
            if PolicyFolder.is_one(path) or (path / MANIFEST).exists() or not (below := runs_under(path)):
                return None
            path = below[0].path
        if self.run_at(path) is None:
            with self._lock:
                self.extra.append(path.absolute())
                self._at = float("-inf")
        return self.run_at(path)

    def known(self, id: str | None) -> Run | None:
        """The run of this id, as it was when folders were looked at the last time."""
        return self._runs.get(id or "")

    # --- recordings --------------------------------------------------------------------------------------------------

    def recordings(self) -> list[RecordingFile]:
        self._look()
        return list(self._recordings.values())

    def recording(self, id: str) -> RecordingFile:
        """UnknownError: there is no such recording."""
        self._look()
        try:
            return self._recordings[id]
        except KeyError:
            raise UnknownError("there is no such recording; it may have been deleted") from None

    def _find_recordings(self) -> Iterator[RecordingFile]:
        places = [(run.folder.path / name, run.id) for run in self._runs.values() for name in (RECORDINGS, "crash")
                  if _inside(run.folder.path / name, run.folder.path)]
        for folder, run in [(self.root / RECORDINGS, None), *places]:
            for path in sorted(found_in(folder, "*.wdr"), reverse=True):
                if not path.is_symlink() and path.is_file():
                    yield RecordingFile(self.id_of(path), path, run)


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def found_in(folder: Path, pattern: str) -> list[Path]:
    with suppress(OSError):
        return list(folder.glob(pattern))
    return []


def _inside(path: Path, root: Path) -> bool:
    """Whether a folder is below the root in truth: a link may lead out of it."""
    try:
        return path.resolve().is_relative_to(root.resolve())
    except OSError:
        return False


def _is_ordinary(run: Path) -> bool:
    """Whether the files of a run are files. A pipe among them would make whoever reads it wait for ever."""
    return all(is_plain(run / name) or not (run / name).exists() for name in READ)


def _written(run: Path) -> float:
    for name in ("metrics.jsonl", "config.yaml"):
        with suppress(OSError):
            return os.stat(run / name).st_mtime
    return 0.0
