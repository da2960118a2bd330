"""The layout of records, taken from the game state. It has a file of its own because workers, which get the layout as an
argument, must not import torch."""
from __future__ import annotations

from wavedash.rocket.rocketsim.record import Field, RecordLayout
from wavedash.rocket.state import GameState


def record_layout(seats: int) -> RecordLayout:
    """The layout of records of arenas with so many seats."""
    fields = (Field(part, name, str(dtype).removeprefix("torch."), shape, offset, stride)
              for part, name, dtype, shape, offset, stride in GameState.layout(seats))
    return RecordLayout(tuple(fields), seats, GameState.record_bytes(seats))
