"""How a stage and the server talk: over one duplex `Connection` of multiprocessing, in messages of bytes.

The first byte of a message is its tag. Text is a JSON object in UTF-8. A frame is what viewers get as a binary message: the
number of the game (uint32), the time (float64, seconds since the epoch), and one record of the current header. Nothing is
pickled, so neither side can make the other run code.
"""
from __future__ import annotations

import json
import math
import struct
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

TEXT, FRAME = b"J", b"F"
STAMP = struct.Struct("<Id")
"""What comes before the record of a frame"""
MOST_COMMAND = 1 << 16
"""Bytes of the longest message to a stage"""
MOST_MESSAGE = 1 << 24
"""Bytes of the longest message from a stage: the header of a walk holds its terrain"""

Message = dict[str, Any]


def send_message(connection: Connection, message: Mapping[str, Any]) -> None:
    """Sends a JSON object. Numbers that JSON does not have, such as NaN, become null."""
    connection.send_bytes(TEXT + json.dumps(plain(message), allow_nan=False, separators=(",", ":")).encode())


def send_frame(connection: Connection, game: int, record: bytes) -> None:
    connection.send_bytes(FRAME + STAMP.pack(game, time.time()) + record)


def receive(connection: Connection, most: int = MOST_MESSAGE) -> Message | bytes:
    """The next message: an object, or the bytes of a frame from its game number on. ValueError: it is neither. EOFError or
    OSError: the other side is gone, or sent more than `most` bytes."""
    data = connection.recv_bytes(most)
    if data[:1] == FRAME and len(data) > STAMP.size:
        return data[1:]
    message = json.loads(data[1:]) if data[:1] == TEXT else None
    if not isinstance(message, dict):
        raise ValueError("a message of a stage is a frame or a JSON object")
    return message


def receive_command(connection: Connection) -> Message:
    """The next command, in the stage. ValueError: it is none."""
    message = receive(connection, MOST_COMMAND)
    if isinstance(message, bytes):
        raise ValueError("a command is a JSON object")
    return message


def plain(value: Any) -> Any:
    """The same with null for numbers that are not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value
