"""Tape: the last minutes of the current game, which can be written as a recording. What happened in a step, as events."""
from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from wavedash.errors import UserError
from wavedash.recordings import Layout, Recording
from wavedash.recordings.header import Event, Header, event
from wavedash.rocket.state import GameState

SECONDS = 300.0
"""The longest tape"""


class Tape:
    """Frames and events of one game, of which the oldest are forgotten."""

    def __init__(self, header: Header, layout: Layout, frames_per_second: float) -> None:
        self.header, self.layout = header, layout
        self.records: deque[Any] = deque(maxlen=max(1, int(SECONDS * frames_per_second)))
        self.events: deque[Event] = deque(maxlen=1000)
        self.frames = 0
        """Frames of the game so far"""

    def add(self, record: Any) -> None:
        self.records.append(record)
        self.frames += 1

    def write(self, folder: str | Path) -> Path:
        """Writes a file with a name of its own."""
        if not self.records:
            raise UserError("there is nothing to record yet: wait for the game to begin")
        first = self.frames - len(self.records)
        events = [{**one, "frame": one["frame"] - first} for one in self.events if one["frame"] >= first]
        title = re.sub(r"[^A-Za-z0-9@._-]+", "-", str(self.header["title"]))[:80].strip("-.")
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
        recording = Recording({**self.header, "events": events}, self.layout, np.concatenate(list(self.records)))
        return recording.write(Path(folder) / f"{stamp}-{title}.wdr")


def events_of(state: GameState, frame: int, names: Sequence[str]) -> Iterator[Event]:
    """What cars did in the last step, in the only arena of `state`."""
    happened = state.events
    for car, name in enumerate(names):
        for kind, words in (("goal", "scores"), ("shot", "shoots at the goal"), ("save", "saves")):
            if bool(getattr(happened, kind)[0, car]):
                yield event(frame, kind, car, f"{name} {words}")
        for kind, field, words in (("demo", "demolished", "demolishes"), ("bump", "bumped", "bumps")):
            other = int(getattr(happened, field)[0, car])
            if other >= 0:
                yield event(frame, kind, car, f"{name} {words} {names[other]}")
