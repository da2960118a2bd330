"""The file of a recording: gzip of `WDR1`, the length of the header, the header as JSON, and the records, back to back.

Recordings come from anywhere, so nothing that a file says is believed before it is checked, and nothing in it is run. A small
file may unpack to any size: it is unpacked piece by piece, and no further than the limit.
"""
from __future__ import annotations

import gzip
import io
import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from wavedash.recordings.header import FORMAT, Header, check_header
from wavedash.recordings.layout import Layout, RecordingError, Records
from wavedash.runs.durable import replace_file

T = TypeVar("T")

MAGIC = b"WDR1"
SUFFIX = ".wdr"
MOST_UNPACKED = 64 << 20
MOST_HEADER = 1 << 20
MOST_PACKED = MOST_UNPACKED + (1 << 20)
"""What gzip makes of incompressible data of the largest size is a little larger"""
_PIECE = 1 << 18
"""Bytes that are unpacked at once"""
_LEVEL = 6
"""Of gzip. 9 takes twice as long for two percent less."""


@dataclass(frozen=True)
class Recording:
    """The content of a file. `recording["ball.position"]` are the values [T, 3] of a field."""

    header: Header
    """As in docs/recordings.md. Its `format` and `record` are written from this version and the layout."""
    layout: Layout
    records: Records
    """[T]: one record of the layout per frame"""

    def __post_init__(self) -> None:
        """Raises RecordingError if the header or the records do not fit."""
        object.__setattr__(self, "header", {**self.header, "format": FORMAT, "record": self.layout.to_json()})
        check_header(self.header, len(self.records))
        if self.records.dtype != self.layout.dtype or self.records.ndim != 1:
            raise RecordingError("the records of the recording are not of its layout")

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.layout.decode(self.records, name)

    def __contains__(self, name: str) -> bool:
        return name in self.layout.by_name

    @property
    def frames(self) -> int:
        return len(self.records)

    @property
    def seconds(self) -> float:
        """How long it takes to play."""
        return self.frames * float(self.header["seconds_per_tick"]) * int(self.header["ticks_per_frame"])

    def to_bytes(self) -> bytes:
        """The file. The same recording gives the same bytes."""
        header = json.dumps(self.header, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        size = len(MAGIC) + 4 + len(header) + self.records.nbytes
        if len(header) > MOST_HEADER or size > MOST_UNPACKED:
            raise RecordingError(f"the recording is too large ({size:,} bytes; the most is {MOST_UNPACKED:,}, of which "
                                 f"{MOST_HEADER:,} for the header): record a shorter game")
        return gzip.compress(b"".join([MAGIC, struct.pack("<I", len(header)), header, self.records.tobytes()]), _LEVEL, mtime=0)

    def write(self, path: str | Path) -> Path:
        """Writes the file: afterwards it is on the disk, and never was there in part."""
        data, path = self.to_bytes(), Path(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, data)
        except OSError as error:
            raise RecordingError(f"cannot write {path}: {error.strerror or error}") from error
        return path


@dataclass(frozen=True)
class Summary:
    """What is known of a file without unpacking it."""

    header: Header
    frames: int
    bytes: int
    """Of the file"""

    @property
    def seconds(self) -> float:
        return self.frames * float(self.header["seconds_per_tick"]) * int(self.header["ticks_per_frame"])


def read(source: str | Path | bytes) -> Recording:
    """Reads a recording from a file, or from the content of one. Raises RecordingError, whatever is wrong with it."""
    if isinstance(source, bytes):
        return _parsed(source)
    def look() -> Recording:
        with _opened(source) as file:
            return _parsed(file.read(MOST_PACKED + 1))

    return _naming(source, look)


def summary(path: str | Path) -> Summary:
    """The header of a file and its number of frames. Only the header is unpacked; the number of frames is what the end of the
    file says, which only `read` checks."""
    def look() -> Summary:
        with _opened(path) as file:
            begins = _Unpacking(file).take_header()
            size = file.seek(0, 2)
            file.seek(max(0, size - 4))
            trailer = file.read(4)
        header, layout, before = begins
        (unpacked,) = struct.unpack("<I", trailer)
        frames, rest = divmod(unpacked - before, layout.dtype.itemsize)
        if unpacked > MOST_UNPACKED or frames < 0 or rest:
            raise RecordingError("the recording is not complete: its end is missing or damaged. Copy it again")
        return Summary(header, frames, size)

    return _naming(path, look)


class _Unpacking:
    """Unpacks a stream of gzip as far as somebody wants to know."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.gzip = file, zlib.decompressobj(wbits=31)

    def take(self, size: int) -> bytes:
        """The next bytes, or fewer at the end."""
        found = bytearray()
        while len(found) < size and not self.gzip.eof:
            packed = self.gzip.unconsumed_tail or self.file.read(1 << 14)
            try:
                piece = self.gzip.decompress(packed, min(_PIECE, size - len(found)))
            except zlib.error as error:
                raise RecordingError("this is no recording, or a damaged one: it is not packed with gzip") from error
            found += piece
            if not packed and not piece:
                break
        return bytes(found)

    def take_header(self) -> tuple[Header, Layout, int]:
        """The header, its layout, and the bytes before the records."""
        start = self.take(len(MAGIC) + 4)
        if start[: len(MAGIC)] != MAGIC or len(start) < len(MAGIC) + 4:
            raise RecordingError(f"this is no recording: it does not begin with {MAGIC.decode()}")
        (length,) = struct.unpack("<I", start[len(MAGIC):])
        if length > MOST_HEADER:
            raise RecordingError(f"the header of the recording has {length:,} bytes, and the most is {MOST_HEADER:,}")
        text = self.take(length)
        if len(text) < length:
            raise RecordingError("the recording is not complete: it ends within its header. Copy it again")
        header = _from_json(text)
        return header, check_header(header), len(start) + length

    def finish(self) -> None:
        """Raises RecordingError unless the stream ends here, as its checksum says."""
        if self.take(1):
            raise RecordingError(f"the recording unpacks to more than {MOST_UNPACKED:,} bytes")
        if not self.gzip.eof:
            raise RecordingError("the recording is not complete: its end is missing. Copy it again")
        if self.gzip.unused_data or self.file.read(1):
            raise RecordingError("something follows the end of the recording")


def _parsed(data: bytes) -> Recording:
    if len(data) > MOST_PACKED:
        raise RecordingError(f"the file is larger than any recording: more than {MOST_PACKED:,} bytes")
    stream = _Unpacking(io.BytesIO(data))
    header, layout, before = stream.take_header()
    body = stream.take(MOST_UNPACKED - before)
    stream.finish()
    if len(body) % layout.dtype.itemsize:
        raise RecordingError(f"the frames of the recording have {layout.dtype.itemsize} bytes each, and {len(body):,} bytes "
                             "are no whole number of them: it was cut or written wrongly")
    return Recording(header, layout, np.frombuffer(body, layout.dtype).copy())


def _from_json(text: bytes) -> Any:
    def refuse(word: str) -> NoReturn:
        raise ValueError(f"{word} is no JSON")

    try:
        found = json.loads(text.decode("utf-8"), parse_constant=refuse)
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()  # 1e999 and halves of letters cannot be written again
        return found
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise RecordingError("the header of the recording is no JSON in UTF-8: the file is damaged") from error


def _opened(path: str | Path) -> BinaryIO:
    try:
        if not Path(path).is_file() and Path(path).exists():  # opening a pipe would wait for somebody to write
            raise RecordingError("it is no file")
        return open(path, "rb")
    except OSError as error:
        raise RecordingError(f"it cannot be read: {error.strerror or error}") from error


def _naming(path: str | Path, look: Callable[[], T]) -> T:
    """Returns what `look` returns; its errors name the file."""
    try:
        return look()
    except RecordingError as error:
        raise RecordingError(f"{path}: {error}") from error
    except OSError as error:
        raise RecordingError(f"{path}: it cannot be read: {error.strerror or error}") from error
