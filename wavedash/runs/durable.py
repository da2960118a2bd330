"""Files are written so that they survive a kill or a power cut: first the data, then the name that makes it visible."""
from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from wavedash.errors import UserError
from wavedash.runs.links import not_following

FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors of a folder that this user may not write, however much room there is"""


def remedy(error: OSError) -> str:
    """Returns what a user can do where a folder cannot be written, for the end of a sentence."""
    return "see that it can be written" if error.errno in FORBIDDEN else "make room on that disk"


def write_durably(path: Path, data: bytes) -> None:
    """Returns once the data is on the disk. The new name itself is durable after `sync_folder(path.parent)`."""
    with open(path, "wb", opener=not_following) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, data: bytes) -> None:
    """Replaces the content of a file at once: readers find the old content or the new one, never a part."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        write_durably(temporary, data)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()  # a partial file would only take space
        raise
    sync_folder(path.parent)


def prepare_file(path: Path) -> None:
    """Makes the folder of a file that long work will write, and tries whether it can be written there, before the work begins.
    UserError: it cannot."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        write_durably(temporary, b"")
        temporary.unlink()
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}; name another file") from error


def sync_folder(path: Path) -> None:
    """Makes new, renamed and removed names of this folder durable. Windows has no such call (NTFS journals its folders)."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
