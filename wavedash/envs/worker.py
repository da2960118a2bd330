"""The program of a worker process: steps its part of the environments when told to. Must not import torch."""
from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from wavedash.envs.arrays import Arrays
from wavedash.envs.batch import HostBatch
from wavedash.envs.child import arrange_signals, commands
from wavedash.envs.host import as_world
from wavedash.envs.row_spec import RowSpec
from wavedash.envs.shared_block import SharedBlock
from wavedash.envs.whereabouts import MAKING, WAITING

# Commands, one byte each. REPLAY is followed by the actions.
RESET, STEP, REPLAY, NOTES = b"r", b"s", b"p", b"n"
# Replies. FAILED is followed, in the same message, by the traceback; NOTED by the notes.
READY, DONE, DONE_ENDED, NOTED, FAILED = b"R", b"d", b"e", b"N", b"!"


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
    arrange_signals(job.stack, job.die_with_parent)
    try:
        batch = _build(job)
        parent.send_bytes(READY)
        for command in commands(parent):
            if command == STEP:
                parent.send_bytes(DONE_ENDED if batch.step() else DONE)
            elif command == RESET:
                batch.reset()
                parent.send_bytes(DONE)
            elif command == REPLAY:
                batch.replay(parent.recv())
                parent.send_bytes(DONE)
            elif command == NOTES:
                notes = batch.notes()
                parent.send_bytes(NOTED)
                parent.send(notes)
        batch.close()
    except Exception:
        with suppress(OSError):  # the parent is gone
            parent.send_bytes(FAILED + traceback.format_exc().encode())


def _build(job: Job) -> HostBatch:
    arrays = Arrays.over(job.block.buffer, job.spec, job.count).part(job.worlds)
    worlds = []
    arrays.doing[0] = MAKING
    for i in range(job.worlds.stop - job.worlds.start):
        arrays.heartbeat[i] = i + 1
        make = getattr(job.make, "for_world", lambda _: job.make)(job.worlds.start + i)  # one that may depend on which it is
        worlds.append(as_world(make()))
    arrays.doing[0] = WAITING
    return HostBatch(worlds, job.spec, arrays, first=job.worlds.start)
