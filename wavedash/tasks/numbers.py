"""Numbers of the host in a small tensor, which captured steps read."""
from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor


class Numbers:
    """What was last written into a tensor that began as zeros. Every number is filled in by itself, which needs no host sync,
    but on a GPU it is a kernel: so only those that change are written."""

    def __init__(self, x: Tensor) -> None:
        self.written: list[float] = [0.0] * x.numel()

    def write(self, x: Tensor, numbers: Iterable[float]) -> None:
        """Writes all numbers in the order of the tensor, which may have moved to another device since."""
        places = x.view(-1)
        for index, (number, before) in enumerate(zip(numbers, tuple(self.written), strict=True)):
            if number != before:
                places[index].fill_(number)
                self.written[index] = number
