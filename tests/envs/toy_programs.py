"""Programs of workers that compute almost nothing, for the tests of the supervisor. Workers import this, so it has no torch."""
from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

import numpy as np

from wavedash.envs.errors import EnvError
from wavedash.envs.workers.shared_block import SharedBlock
from wavedash.envs.workers.signs_of_life import MAKING, Pulse, SignsOfLife

CALLING = MAKING + 1
THINGS = 3


def signs_over(block: SharedBlock) -> SignsOfLife:
    numbers = np.ndarray(THINGS + 1, np.int64, block.buffer)
    return SignsOfLife(numbers[:THINGS], numbers[THINGS:])


@dataclass(frozen=True)
class ToyJob:
    """`birth` says what happens while the program is made."""

    block: SharedBlock
    birth: str = ""

    def __call__(self) -> Toy:
        toy = Toy(Pulse(signs_over(self.block)))
        if self.birth:
            toy.pulse.note(1, MAKING)
            toy.answer(self.birth.encode())
        return toy


class Toy:
    """It answers with its process id and the command; some commands end it."""

    def __init__(self, pulse: Pulse) -> None:
        self.pulse = pulse

    def answer(self, command: bytes) -> bytes:
        if command == b"die in 2":
            self.pulse.note(2, CALLING)
            os._exit(7)
        if command == b"crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if command == b"raise":
            raise ValueError("a bug")
        if command == b"say":
            raise EnvError("said in words")
        if command == b"hang":
            self.pulse.note(0, CALLING)
            time.sleep(1000)
        if command == b"take long":  # but not without a sign of life
            for thing in range(8):
                self.pulse.note(thing % THINGS, CALLING)
                time.sleep(0.4)
            self.pulse.rest()
        return str(os.getpid()).encode() + b" " + command

    def close(self) -> None:
        pass
