"""Recordings of Rocket League: the fields of a frame, events, the tape of arenas on the device, highlights of a run."""
from __future__ import annotations

from wavedash.rocket.recording.frames import Head, RocketFrames

__all__ = ["Head", "RocketFrames"]
