"""The program of a worker process with RocketSim arenas. Must not import torch."""
from __future__ import annotations

import struct
import traceback
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

from wavedash.envs.child import arrange_signals, commands
from wavedash.envs.shared_block import SharedBlock
from wavedash.errors import UserError
from wavedash.rocket.rocketsim.batch import ArenaBatch
from wavedash.rocket.rocketsim.record import RecordLayout, SharedArrays
from wavedash.rocket.seats import Seat

STEP = struct.Struct("<qii")
"""The only command: number of the step, ticks, delay"""
READY, DONE, FAILED = b"R", b"d", b"!"
"""Answers. FAILED is followed by the reason."""


@dataclass(frozen=True)
class Job:
    """What a worker process is given at its start."""

    layout: RecordLayout
    block: SharedBlock
    seats: tuple[tuple[Seat, ...], ...]
    """Of all arenas"""
    arenas: slice
    """Those of this worker"""
    die_with_parent: bool = False


def work(job: Job, parent: Connection) -> None:
    """Runs until the parent closes the pipe or is gone."""
    arrange_signals(None, job.die_with_parent)
    try:
        arrays = SharedArrays.over(job.block.buffer, job.layout, len(job.seats)).part(job.arenas)
        batch = ArenaBatch(job.layout, job.seats[job.arenas], arrays)
        parent.send_bytes(READY)
        for command in commands(parent):
            batch.step(*STEP.unpack(command))
            parent.send_bytes(DONE)
    except Exception as error:
        with suppress(OSError):  # the parent is gone
            reason = str(error) if isinstance(error, UserError) else traceback.format_exc()
            parent.send_bytes(FAILED + reason.encode())
