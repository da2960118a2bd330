"""The program of a worker process: steps its part of the environments when told to. Must not import torch."""
from __future__ import annotations

import ctypes
import faulthandler
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from wavedash.envs.arrays import Arrays
from wavedash.envs.batch import HostBatch
from wavedash.envs.host import as_world
from wavedash.envs.row_spec import RowSpec
from wavedash.envs.shared_block import SharedBlock

# Commands, one byte each. REPLAY is followed by the actions.
RESET, STEP, REPLAY = b"r", b"s", b"p"
# Replies. FAILED is followed, in the same message, by the traceback.
READY, DONE, DONE_ENDED, FAILED = b"R", b"d", b"e", b"!"

PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass(frozen=True)
class Job:
    """What a worker process is given at its start."""

    make: Callable[[], Any]
    spec: RowSpec
    block: SharedBlock
    count: int
    """Environments of the whole run, which the block holds."""
    worlds: slice
    """Those of this worker."""
    stack: SharedBlock | None = None
    """Where the stack is written to when the parent asks for it. New with every process, like the rest below."""
    die_with_parent: bool = False
    """Not for a parent thread that may end before the process: the system would take its end for the parent's."""


def work(job: Job, parent: Connection) -> None:
    """Runs until the parent closes the pipe or is gone."""
    _arrange_signals(job)
    try:
        batch = _build(job)
        parent.send_bytes(READY)
        for command in _commands(parent):
            if command == STEP:
                parent.send_bytes(DONE_ENDED if batch.step() else DONE)
            elif command == RESET:
                batch.reset()
                parent.send_bytes(DONE)
            elif command == REPLAY:
                batch.replay(parent.recv())
                parent.send_bytes(DONE)
        batch.close()
    except Exception:
        with suppress(OSError):  # the parent is gone
            parent.send_bytes(FAILED + traceback.format_exc().encode())


def _build(job: Job) -> HostBatch:
    arrays = Arrays.over(job.block.buffer, job.spec, job.count).part(job.worlds)
    worlds = []
    for i in range(job.worlds.stop - job.worlds.start):
        worlds.append(as_world(job.make()))
        arrays.heartbeat[i] += 1
    return HostBatch(worlds, job.spec, arrays, first=job.worlds.start)


def _commands(parent: Connection) -> Iterator[bytes]:
    with suppress(EOFError, OSError):
        while True:
            yield parent.recv_bytes()


def _arrange_signals(job: Job) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the parent decides what it means
    if job.stack is not None and hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, job.stack.fileno())
    if sys.platform == "linux" and job.die_with_parent:
        # A worker that waits for its next command sees the pipe close; one that is stuck in a step needs this.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
