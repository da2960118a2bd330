"""Pace: when the bot decides and from which packet on it sends a decision, so that both are as in training.

In training a decision is made every `ticks` ticks, and takes effect `delay` ticks later. What a bot sends when it has seen
frame n is in force from frame n + 1 + latency on. The latency is taken to be 1, as in the real game, until it is measured from
the inputs that packets show, so that a server without latency plays the same game.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
USUAL_LATENCY = 1


class Pace:
    """Counts frames from the beginning of play on. `decides` says whether this frame is one of a decision; `decide` takes it;
    `controls` are what to send now."""

    def __init__(self, ticks: int, delay: int, latency: int = USUAL_LATENCY) -> None:
        self.ticks, self.delay, self.latency = ticks, delay, latency
        self.idle = np.zeros(8, np.float32)
        self._sent_at: int | None = None
        self._awaited = self.idle
        self._last_frame = -1
        self.begin(0)

    def begin(self, frame: int) -> None:
        """Play begins with this frame: it is one of a decision, and nothing is in force."""
        self.next = frame
        self.controls = self.idle
        self.waiting: list[tuple[int, Array]] = []
        self._sent_at = None

    def decides(self, frame: int) -> bool:
        """Whether a decision is due. After missed frames the decision is made at once, and the rhythm stays as it was."""
        return frame >= self.next

    def decide(self, frame: int, controls: Array) -> None:
        due = frame - (frame - self.next) % self.ticks  # the frame at which it should have been made
        self.waiting.append((due + max(0, self.delay - self.latency), controls))
        self.next = due + self.ticks

    def send(self, frame: int) -> Array:
        """The controls to answer this frame with."""
        before = self.controls
        while self.waiting and self.waiting[0][0] <= frame:
            self.controls = self.waiting.pop(0)[1]
        if self._sent_at is None and not np.array_equal(before, self.controls):
            self._sent_at, self._awaited = frame, self.controls
        self._last_frame = frame
        return self.controls

    def seen(self, frame: int, in_force: Array) -> None:
        """Measures the latency: a packet shows which input was in force in the frame that led to it."""
        if self._sent_at is None:
            return
        if frame != self._last_frame + 1 or frame - self._sent_at > 4:
            self._sent_at = None  # a gap or something strange: wait for the next change of controls
        elif np.allclose(in_force, self._awaited, atol=1e-3):
            self.latency, self._sent_at = min(frame - self._sent_at - 1, max(self.delay, USUAL_LATENCY)), None
