"""Where the time of an iteration goes: laps are timed by the host's clock, on a GPU by the device's own."""
from __future__ import annotations

from itertools import pairwise
from time import perf_counter

import torch

PARTS = ("collect", "env", "inference", "gae", "update")
"""The parts of an iteration in the order of reports. `collect` stands for the next three where they are one CUDA graph."""


class Stopwatch:
    """The time since the last lap belongs to the part that `lap` names. For the CPU, where work is done when a call returns."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self._seconds: dict[str, float] = {}
        self._last = perf_counter()

    def lap(self, part: str) -> None:
        now = perf_counter()
        self._seconds[part] = self._seconds.get(part, 0.0) + now - self._last
        self._last = now

    def read(self) -> dict[str, float]:
        """Seconds of each part since the start."""
        return {part: self._seconds[part] for part in PARTS if part in self._seconds}


class DeviceStopwatch(Stopwatch):
    """Laps are marks in the device's queue: the host runs ahead of it, and the host's clock only tells how long launching took.

    There is no host sync for a mark. `read` may be called when the device has passed the last one: after a result was read.
    """

    def __init__(self, device: torch.device):
        self._device = device
        self._marks: list[torch.cuda.Event] = []
        super().__init__()

    def start(self) -> None:
        self._parts: list[str] = []
        self._mark(0)

    def lap(self, part: str) -> None:
        if not torch.cuda.is_current_stream_capturing():  # a graph is timed from outside, when it is replayed
            self._parts.append(part)
            self._mark(len(self._parts))

    def _mark(self, index: int) -> None:
        if index == len(self._marks):
            self._marks.append(torch.cuda.Event(enable_timing=True))  # type: ignore[no-untyped-call]
        self._marks[index].record(torch.cuda.current_stream(self._device))

    def read(self) -> dict[str, float]:
        self._seconds = {}
        for part, (begin, end) in zip(self._parts, pairwise(self._marks), strict=False):
            self._seconds[part] = self._seconds.get(part, 0.0) + begin.elapsed_time(end) / 1e3
        return super().read()


def stopwatch_for(device: torch.device) -> Stopwatch:
    return DeviceStopwatch(device) if device.type == "cuda" else Stopwatch()
