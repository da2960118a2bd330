"""The header of a recording: what was recorded, who played, and what happened in which frame."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from wavedash.recordings.layout import Layout, RecordingError

FORMAT = 1
SOURCES = ("match", "eval", "rating", "stage", "crash", "highlight")
"""What made a recording"""
MOST_EVENTS = 10_000
MOST_PLAYERS = 64

Header = dict[str, Any]
Event = dict[str, Any]


def make_header(kind: str, title: str, source: str, ticks_per_frame: int, seconds_per_tick: float, layout: Layout, *,
                players: Sequence[Mapping[str, Any]] = (), scene: Mapping[str, Any] | None = None,
                events: Sequence[Event] = (), reward_terms: Sequence[str] = (),
                actions: Sequence[Sequence[float]] | None = None, run: str | None = None,
                step: int | None = None, score: Sequence[int] | None = None) -> Header:
    """A header of now. It is checked: RecordingError says what is wrong."""
    header: Header = {
        "format": FORMAT, "kind": kind, "title": title, "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "source": source, "seconds_per_tick": seconds_per_tick, "ticks_per_frame": ticks_per_frame, "record": layout.to_json(),
        "players": [dict(player) for player in players], "scene": dict(scene or {}), "events": list(events),
        "reward_terms": list(reward_terms), "actions": None if actions is None else [list(map(float, row)) for row in actions],
        "run": run, "step": step, **({} if score is None else {"score": list(score)}),
    }
    check_header(header)
    return header


def event(frame: int, kind: str, car: int | None, text: str) -> Event:
    """Something that happened in a frame; `car` is an index into the players, or None."""
    return {"frame": int(frame), "kind": kind, "car": None if car is None else int(car), "text": text}


def check_header(header: object, frames: int | None = None) -> Layout:
    """The layout of the records. Raises RecordingError if the header is not as docs/recordings.md says. Keys that this version
    does not know are allowed. `frames`: how many there are, if that is known."""
    if not isinstance(header, dict):
        raise RecordingError("the header of a recording is a JSON object")
    if header.get("format") != FORMAT:
        raise RecordingError(f"the recording has format {ascii(header.get('format'))[:20]}, and this version of Wavedash reads "
                             f"format {FORMAT}: use the version that wrote it")
    for key, (says, holds) in _RULES.items():
        if key not in header or not holds(header[key]):
            raise RecordingError(f"the header of the recording has no {key} that is {says}")
    if "score" in header and not (_is_list(header["score"], 2, _is_count) and len(header["score"]) == 2):
        raise RecordingError("the score of the recording is not a list of two whole numbers: those of blue and orange")
    for happened in header["events"]:
        _check_event(happened, frames)
    return Layout.from_json(header["record"])


def _check_event(happened: object, frames: int | None) -> None:
    if not isinstance(happened, dict) or not (
            _is_count(happened.get("frame")) and _is_text(happened.get("kind")) and _is_text(happened.get("text"))
            and (happened.get("car", 0) is None or _is_count(happened.get("car")))):
        raise RecordingError("an event of a recording has frame, kind, car (or null) and text")
    if frames is not None and happened["frame"] >= max(1, frames):
        raise RecordingError(f"an event of the recording is in frame {happened['frame']}, and there are {frames} frames")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_list(value: object, most: int, holds: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and len(value) <= most and all(map(holds, value))


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


_RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "kind": ("a text", _is_text),
    "title": ("a text", _is_text),
    "created": ("a text", _is_text),
    "source": ("a text", _is_text),
    "seconds_per_tick": ("a positive number up to 10", lambda x: _is_number(x) and 1e-6 <= x <= 10),
    "ticks_per_frame": ("a whole number from 1 to 10,000", lambda x: _is_count(x) and 1 <= x <= 10_000),
    "players": (f"a list of at most {MOST_PLAYERS} objects", lambda x: _is_list(x, MOST_PLAYERS, _is_object)),
    "scene": ("an object", _is_object),
    "events": (f"a list of at most {MOST_EVENTS:,} events", lambda x: _is_list(x, MOST_EVENTS, _is_object)),
    "reward_terms": ("a list of names", lambda x: _is_list(x, 1000, _is_text)),
    "actions": ("null or a list of controls", lambda x: x is None or _is_list(
        x, 10_000, lambda row: _is_list(row, 100, _is_number))),
    "run": ("null or a text", lambda x: x is None or _is_text(x)),
    "step": ("null or a whole number", lambda x: x is None or _is_count(x)),
}
"""For every key of a header, what it is in words, and whether a value is that"""
