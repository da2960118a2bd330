"""Pace: when the bot decides and from which packet on it sends a decision, so that both are as in training.

In training a decision is made every `ticks` ticks, and takes effect `delay` ticks later. What a bot sends when it has seen
frame n is in force from frame n + 1 + latency on. The latency is 1 in the real game, where the next tick has begun when the
answer comes, and 0 where a server waits for answers. It is measured from the inputs that packets show: in the countdown by a
nudge that moves nothing, and in play by every change of controls.
"""
from __future__ import annotations

from collections import deque
from statistics import median_low
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
USUAL_LATENCY, LONGEST_LATENCY = 1, 4
IDLE = np.zeros(8, np.float32)
NUDGE = np.array([0, 0, 0, 1 / 64, 0, 0, 0, 0], np.float32)
"""A yaw that nobody sees, for a car on its wheels"""
NUDGE_TICKS = 8
MEASURED = 9
"""Latencies of which the median counts"""


class Pace:
    """Counts frames from the beginning of play on. `decides` says whether a decision is due, `decide` takes it, `send` says
    what to answer a frame with."""

    def __init__(self, ticks: int, delay: int) -> None:
        self.ticks, self.delay = ticks, delay
        self.measured: deque[int] = deque(maxlen=MEASURED)
        self._last_frame = -1
        self.begin(0)

    @property
    def latency(self) -> int:
        return median_low(self.measured) if self.measured else USUAL_LATENCY

    def begin(self, frame: int) -> None:
        """Play begins with this frame: it is one of a decision, and nothing is in force."""
        self.next = frame
        self.controls = IDLE
        self._waiting: list[tuple[int, Array]] = []
        self._sent_at: int | None = None
        self._nudged: int | None = None

    def decides(self, frame: int) -> bool:
        """Whether a decision is due. After missed frames it is made at once, and the rhythm stays as it was."""
        return frame >= self.next

    def decide(self, frame: int, controls: Array) -> None:
        due = frame - (frame - self.next) % self.ticks  # the frame at which it should have been made
        self._waiting.append((due + max(0, self.delay - self.latency), controls))
        self.next = due + self.ticks

    def send(self, frame: int) -> Array:
        """The controls to answer this frame with."""
        before = self.controls
        while self._waiting and self._waiting[0][0] <= frame:
            self.controls = self._waiting.pop(0)[1]
        if not np.array_equal(before, self.controls):
            self._sent_at = frame
        return self.controls

    def nudge(self, frame: int) -> Array:
        """Returns what to answer a frame of the countdown with."""
        if self._nudged is None:
            self._nudged = self._sent_at = frame
        self.controls = NUDGE if frame - self._nudged < NUDGE_TICKS else IDLE
        return self.controls

    def seen(self, frame: int, in_force: Array) -> None:
        """A packet shows which controls were in force in the tick that led to it. It is called for every packet, before it is
        answered."""
        missed, self._last_frame = frame > self._last_frame + 1, frame
        if self._sent_at is None:
            return
        latency = frame - self._sent_at - 1
        if missed or latency > LONGEST_LATENCY:
            self._sent_at = None
        elif latency >= 0 and np.allclose(in_force, self.controls, atol=1e-3):
            self.measured.append(latency)
            self._sent_at = None
