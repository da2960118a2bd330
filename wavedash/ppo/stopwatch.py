"""A stopwatch measures where the time of an iteration goes, by the host's clock or, on a GPU, by CUDA events."""
from __future__ import annotations

from itertools import pairwise
from time import perf_counter

import torch

PARTS = ("collect", "env", "inference", "gae", "update")
"""The parts of an iteration in the order of reports. `collect` stands for the next three where they are one CUDA graph."""


class Stopwatch:
    """Counts the time since the last lap for the part that `lap` names. It is for the CPU, where calls return when they are
    done."""

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
        """Returns the seconds of each part since the start."""
        return {part: self._seconds[part] for part in PARTS if part in self._seconds}


class DeviceStopwatch(Stopwatch):
    """Laps are events in the stream of the device: the host runs ahead, and its clock only tells how long launching took.

    An event needs no host sync. `read` may be called once the device has passed the last one, for instance after a result was
    read.
    """

    def __init__(self, device: torch.device):
        self._device = device
        self._events: list[torch.cuda.Event] = []
        super().__init__()

    def start(self) -> None:
        self._parts: list[str] = []
        self._record(0)

    def lap(self, part: str) -> None:
        if not torch.cuda.is_current_stream_capturing():  # a graph is timed as a whole when it is replayed
            self._parts.append(part)
            self._record(len(self._parts))

    def _record(self, index: int) -> None:
        if index == len(self._events):
            self._events.append(torch.cuda.Event(enable_timing=True))  # type: ignore[no-untyped-call]
        self._events[index].record(torch.cuda.current_stream(self._device))

    def read(self) -> dict[str, float]:
        self._seconds = {}
        for part, (begin, end) in zip(self._parts, pairwise(self._events), strict=False):
            self._seconds[part] = self._seconds.get(part, 0.0) + begin.elapsed_time(end) / 1e3
        return super().read()


def stopwatch_for(device: torch.device) -> Stopwatch:
    return DeviceStopwatch(device) if device.type == "cuda" else Stopwatch()
