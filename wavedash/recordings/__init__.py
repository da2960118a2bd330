"""Recordings: files of games and walks, one record of numbers per frame. docs/recordings.md has the format.

`Recording` is the content of a file, `read` and `summary` read one, `Layout` says which fields a record has. What is recorded
of a kind of environment is in its own folder (`wavedash/rocket/recording`).
"""
from __future__ import annotations

from wavedash.recordings.file import Recording, Summary, read, summary
from wavedash.recordings.header import event, make_header
from wavedash.recordings.layout import Field, Layout, RecordingError

__all__ = ["Field", "Layout", "Recording", "RecordingError", "Summary", "event", "make_header", "read", "summary"]
