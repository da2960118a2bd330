"""The program of a worker process with RocketSim arenas. It must not import torch."""
from __future__ import annotations

import struct
from dataclasses import dataclass

from wavedash.envs.workers.shared_block import SharedBlock
from wavedash.rocket.rocketsim.batch import ArenaBatch
from wavedash.rocket.rocketsim.record import RecordLayout, SharedArrays
from wavedash.rocket.seats import Seat

STEP = struct.Struct("<qii")
"""The only command: number of the step, ticks, delay"""
DONE = b"d"


@dataclass(frozen=True)
class ArenaJob:
    """Builds the arenas of one worker."""

    layout: RecordLayout
    block: SharedBlock
    seats: tuple[tuple[Seat, ...], ...]
    """The seats of all arenas"""
    share: slice
    """The arenas of this worker"""

    def __call__(self) -> ArenaProgram:
        arrays = SharedArrays.over(self.block.buffer, self.layout, len(self.seats)).part(self.share)
        return ArenaProgram(ArenaBatch(self.layout, self.seats[self.share], arrays))


class ArenaProgram:
    """Steps the arenas at every command."""

    def __init__(self, batch: ArenaBatch) -> None:
        self._batch = batch

    def answer(self, command: bytes) -> bytes:
        self._batch.step(*STEP.unpack(command))
        return DONE

    def close(self) -> None:
        """Nothing to do: the arenas end with the process."""
