"""What tests ask about processes, which may end at any moment."""
from __future__ import annotations

import socket

import psutil


def words_of(process: psutil.Process) -> list[str]:
    """The command line of a process; empty if it has ended, also if nobody has asked yet how."""
    try:
        return list(process.cmdline())
    except psutil.NoSuchProcess:
        return []


def free_port() -> int:
    """A port that nobody listens on, and that no server takes unless it is told to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
