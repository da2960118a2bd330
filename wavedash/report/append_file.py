"""A file that grows by whole records or not at all, and outlives a full disk."""
from __future__ import annotations

import logging
from pathlib import Path

from wavedash.runs.links import not_following

log = logging.getLogger(__name__)


class AppendFile:
    """Appends records. One that cannot be written is dropped and counted; training goes on, and so does the file later."""

    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.dropped = 0
        self._failing = False
        # Unbuffered: a record is in the file when `append` returns.
        self._file = open(path, "ab", buffering=0, opener=not_following)  # noqa: SIM115 (closed by `close`)
        self._end = path.stat().st_size

    def append(self, record: bytes) -> None:
        try:
            self._file.truncate(self._end)  # what an earlier failure wrote of its record before the disk was full
            written = 0
            while written < len(record):
                written += self._file.write(record[written:])
        except OSError as error:
            self.dropped += 1
            if not self._failing:
                log.warning("%s cannot be written (%s): points are dropped until it can; free disk space", self.path, error)
            self._failing = True
        else:
            self._end += written
            if self._failing:
                log.warning("%s can be written again; %d points were dropped so far", self.path, self.dropped)
            self._failing = False

    def close(self) -> None:
        self._file.close()
