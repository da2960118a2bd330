"""OwnRandomness: gives an environment that draws from numpy's and Python's global generators a random stream of its own."""
from __future__ import annotations

import random
from types import TracebackType

import numpy as np


class OwnRandomness:
    """Inside `with`, numpy's global generator is this environment's own: those that share a process do not disturb each other.

    Python's `random` cannot be exchanged so cheaply. It is seeded by `seed`, so its numbers depend on the seed alone until
    another environment of the same process is seeded.
    """

    def __init__(self) -> None:
        self._own = np.random.MT19937(0)

    def seed(self, seed: int) -> None:
        self._own = np.random.MT19937(seed)
        random.seed(seed)

    def __enter__(self) -> None:
        self._before = np.random.get_bit_generator()  # type: ignore[attr-defined, unused-ignore]
        np.random.set_bit_generator(self._own)  # type: ignore[attr-defined, unused-ignore]

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        np.random.set_bit_generator(self._before)  # type: ignore[attr-defined, unused-ignore]
