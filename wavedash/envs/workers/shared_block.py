"""SharedBlock: memory shared with worker processes that cannot outlive them.

It has no name in /dev/shm that a killed process could leave behind: on Linux it is an anonymous memfd, on other POSIX systems
an unlinked temporary file, on Windows a mapping that the system frees with its last handle.
"""
from __future__ import annotations

import mmap
import os
import secrets
import sys
import tempfile
from multiprocessing import reduction
from typing import Any


class SharedBlock:
    """`size` bytes, zero at first. It can be sent to a worker only as an argument of a spawned process."""

    _tag: str  # Windows
    _fd: int  # POSIX

    def __init__(self, size: int) -> None:
        self._size = size
        if sys.platform == "win32":
            self._tag = f"wavedash-{secrets.token_hex(16)}"
            self.buffer = mmap.mmap(-1, size, tagname=self._tag)
        else:
            self._fd = _anonymous_file()
            os.ftruncate(self._fd, size)
            self.buffer = mmap.mmap(self._fd, size)

    def fileno(self) -> int:
        """The file descriptor; there is none on Windows."""
        return self._fd

    def __getstate__(self) -> tuple[int, Any]:
        return self._size, self._tag if sys.platform == "win32" else reduction.DupFd(self._fd)

    def __setstate__(self, state: tuple[int, Any]) -> None:
        self._size, handle = state
        if sys.platform == "win32":
            self._tag = handle
            self.buffer = mmap.mmap(-1, self._size, tagname=handle)
        else:
            self._fd = handle.detach()
            self.buffer = mmap.mmap(self._fd, self._size)

    def __del__(self) -> None:
        # The mapping itself is released with the last array over it.
        if sys.platform != "win32" and hasattr(self, "_fd"):
            os.close(self._fd)


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("wavedash")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
