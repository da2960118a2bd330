"""A file that grows by whole records or not at all, and that survives a full disk and its own deletion."""
from __future__ import annotations

import logging
import os
from io import FileIO
from pathlib import Path

from wavedash.runs.links import not_following

log = logging.getLogger(__name__)


class AppendFile:
    """Appends records. One that cannot be written is dropped and counted; later records are written when that is possible."""

    def __init__(self, path: Path):
        self.path = path
        self.dropped = 0
        self._failing = False
        self._file: FileIO | None = None
        self._end = 0
        try:
            self._opened()
        except OSError as error:
            self._fails(error)

    def append(self, record: bytes) -> None:
        try:
            file = self._opened()
            file.truncate(self._end)  # removes what an earlier failure wrote of its record
            written = 0
            while written < len(record):
                written += file.write(record[written:])
        except OSError as error:
            self.dropped += 1
            self._fails(error)
        else:
            self._end += written
            if self._failing:
                log.warning("%s can be written again; %d points were dropped so far", self.path, self.dropped)
            self._failing = False

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _opened(self) -> FileIO:
        if self._file is not None and os.fstat(self._file.fileno()).st_nlink == 0:
            log.warning("%s was deleted during the run: a new one begins", self.path)
            self._file.close()
            self._file = None
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # It is unbuffered, so that a record is in the file when `append` returns.
            self._file = open(self.path, "ab", buffering=0, opener=not_following)  # noqa: SIM115 (closed by `close`)
            self._end = os.fstat(self._file.fileno()).st_size
        return self._file

    def _fails(self, error: OSError) -> None:
        if not self._failing:
            log.warning("%s cannot be written (%s): points are dropped until it can. Make room on that disk, or move away what "
                        "is in its place", self.path, error)
        self._failing = True
