"""An episode becomes a recording: with the players, the score and what happened."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavedash.recordings.file import Recording
from wavedash.recordings.header import Event, event
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.recording.episodes import Episode
from wavedash.rocket.recording.events import Narrator
from wavedash.rocket.recording.frames import RocketFrames

USUAL_TICKS = 8
"""Ticks between two frames, where arenas step more often: 15 frames a second. Whoever shows them interpolates along the
velocities."""


def recording_of(episode: Episode, players: Sequence[Mapping[str, Any]], frames: RocketFrames, title: str, source: str,
                 ticks: int, *, measures: Sequence[str] = (), end: str | None = None, **more: Any) -> Recording:
    """The recording of an episode. `players`: of the header, one per car. `ticks`: between two frames of the episode. `end`:
    what is said of its end. `more`: as in `make_header`."""
    every = max(1, USUAL_TICKS // ticks)
    taken = np.unique(np.append(np.arange(0, episode.frames, every), episode.frames - 1))
    told = Narrator(players, ticks / TICK_RATE, measures).tell(episode.happened)
    if end is not None:
        told.append(event(episode.frames - 1, "end", None, end))
    records = episode.records[taken]
    header = frames.header(title, source, ticks * every, players, events=_moved(told, taken),
                           score=[int(goals) for goals in records["score"][-1]], **more)
    return Recording(header, frames.layout, records)


def _moved(events: Sequence[Event], taken: NDArray[Any]) -> list[Event]:
    """The events in the first frame that is taken at or after theirs."""
    frames = np.searchsorted(taken, [one["frame"] for one in events]).tolist()
    return [{**one, "frame": frame} for one, frame in zip(events, frames, strict=True)]
