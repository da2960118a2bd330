"""Tape: the last minutes of the current game, which can be written as a recording."""
from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from wavedash.errors import UserError
from wavedash.recordings import Layout, Recording
from wavedash.recordings.header import Event, Header
from wavedash.recordings.names import file_name, stamp

SECONDS = 300.0
"""The longest tape"""
MOST_EVENTS = 5000


class Tape:
    """Frames and events of one game, of which the oldest are forgotten."""

    def __init__(self, header: Header, layout: Layout, frames_per_second: float) -> None:
        self.header, self.layout = header, layout
        self.records: deque[Any] = deque(maxlen=max(1, int(SECONDS * frames_per_second)))
        self.events: deque[Event] = deque(maxlen=MOST_EVENTS)
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
        events = [{**one, "frame": min(one["frame"], self.frames - 1) - first} for one in self.events if one["frame"] >= first]
        records = np.concatenate(list(self.records))
        score = {"score": [int(goals) for goals in records["score"][-1]]} if "score" in self.layout.by_name else {}
        recording = Recording({**self.header, **score, "events": events}, self.layout, records)
        return recording.write(Path(folder) / file_name(str(self.header["title"]), stamp()))
