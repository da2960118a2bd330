"""Recordings as the page lists and downloads them."""
from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from threading import Lock
from typing import Any, BinaryIO

from wavedash.recordings import RecordingError, Summary, summary
from wavedash.runs.links import plain_file
from wavedash.web.library import Library, RecordingFile, UnknownError
from wavedash.web.run import stamp_of

MOST_ROWS = 500
"""Recordings that are listed, the newest of all"""
MOST_EVENTS = 200
"""Events of a recording that its row tells; the file has all of them"""
PIECE = 1 << 16
"""Bytes of a file that are in memory at once, however slowly a browser takes them"""


class Recorded:
    """Answers the questions of the page about recordings. All methods may be called from any thread."""

    def __init__(self, library: Library) -> None:
        self._library, self._lock = library, Lock()
        self._seen: dict[str, tuple[Any, dict[str, Any] | None]] = {}
        """Rows by the stamp of their file; None: that file is no recording"""

    def rows(self) -> list[dict[str, Any]]:
        """Every recording that can be read, the newest first."""
        files = self._library.recordings()
        found = [row for file in files if (row := self._row(file)) is not None]
        with self._lock:
            known = {file.id for file in files}
            self._seen = {id: seen for id, seen in self._seen.items() if id in known}
        return sorted(found, key=lambda row: (row["created"], row["id"]), reverse=True)[:MOST_ROWS]

    def _row(self, file: RecordingFile) -> dict[str, Any] | None:
        stamp = stamp_of(file.path)
        with self._lock:
            seen = self._seen.get(file.id)
        if seen is None or seen[0] != stamp:
            row = None
            with suppress(RecordingError):
                row = _row_of(file, summary(file.path))
            seen = stamp, row
            with self._lock:
                self._seen[file.id] = seen
        return seen[1]

    def open(self, id: str) -> tuple[str, int, Iterator[bytes]]:
        """The name under which a recording is downloaded, its size, and its bytes piece by piece. UnknownError: it is not there
        any more."""
        file = self._library.recording(id)
        try:
            opened = open(file.path, "rb", opener=plain_file)  # noqa: SIM115 (`_pieces` closes it)
            size = os.fstat(opened.fileno()).st_size
        except OSError:
            raise UnknownError("the recording cannot be read any more; it may have been deleted") from None
        return safe_name(file.path.stem), size, _pieces(opened, size)


def safe_name(stem: str) -> str:
    """A file name of letters, digits and a few signs, whatever the file is called here."""
    kept = re.sub(r"[^A-Za-z0-9@_-]+", "-", stem).strip("-")[:100]
    return f"{kept or 'recording'}.wdr"


def _pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    """The first `size` bytes: a file that grows meanwhile would not fit the length that was announced."""
    with file:
        while size > 0 and (piece := file.read(min(PIECE, size))):
            size -= len(piece)
            yield piece


def _row_of(file: RecordingFile, found: Summary) -> dict[str, Any]:
    header = found.header
    return {"id": file.id, "title": header["title"], "kind": header["kind"], "run": file.run, "source": header["source"],
            "created": header["created"], "seconds": found.seconds, "players": header["players"], "score": header.get("score"),
            "bytes": found.bytes, "events": header["events"][:MOST_EVENTS]}
