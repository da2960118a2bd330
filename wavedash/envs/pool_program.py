"""The program of a worker of a WorkerPool, which steps its share of the environments. It must not import torch."""
from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wavedash.envs.adapters import as_host_env
from wavedash.envs.arrays import Arrays
from wavedash.envs.batch import HostBatch
from wavedash.envs.row_spec import RowSpec
from wavedash.envs.workers.shared_block import SharedBlock
from wavedash.envs.workers.signs_of_life import MAKING, Pulse

# Commands, one byte each. REPLAY is followed by the pickled actions.
RESET, STEP, REPLAY, NOTES = b"r", b"s", b"p", b"n"
# Answers. NOTED is followed by the pickled notes.
DONE, DONE_ENDED, NOTED = b"d", b"e", b"N"


@dataclass(frozen=True)
class EnvJob:
    """Builds the environments of one worker."""

    make: Callable[[], Any]
    spec: RowSpec
    block: SharedBlock
    count: int
    """Environments of the whole run, which the block holds."""
    share: slice
    """The environments of this worker."""

    def __call__(self) -> EnvProgram:
        arrays = Arrays.over(self.block.buffer, self.spec, self.count).part(self.share)
        envs, pulse = [], Pulse(arrays.signs)
        for i, index in enumerate(range(self.share.start, self.share.stop)):
            pulse.note(i, MAKING)
            make = getattr(self.make, "for_env", lambda _: self.make)(index)  # a factory may differ by environment
            envs.append(as_host_env(make()))
        pulse.rest()
        return EnvProgram(HostBatch(envs, self.spec, arrays, first=self.share.start))


class EnvProgram:
    """Answers each command by a call of the batch."""

    def __init__(self, batch: HostBatch) -> None:
        self._batch = batch
        self.close = batch.close

    def answer(self, command: bytes) -> bytes:
        batch = self._batch
        if command == STEP:
            return DONE_ENDED if batch.step() else DONE
        if command == NOTES:
            return NOTED + pickle.dumps(batch.notes())
        if command == RESET:
            batch.reset()
        else:
            batch.replay(pickle.loads(command[len(REPLAY) :]))
        return DONE
