"""Channel: one connection of RLBot's protocol that never waits. A message is two bytes of length, big-endian, and a flatbuffer.

What cannot be sent at once is kept; a reader that has fallen behind gets no further packets until it has read what it was sent,
so a program that stands still costs a few kilobytes and nobody's time.
"""
from __future__ import annotations

import socket
import sys
from contextlib import suppress

LONGEST = (1 << 16) - 1
"""Bytes of the longest message"""
AT_ONCE = 1 << 16
"""Bytes that are read at once, so that one program that floods the server does not keep it from the others"""
MOST_WAITING = 1 << 20
"""Bytes that may wait for a reader"""


class Closed(Exception):  # noqa: N818 (an event that the hub handles)
    """The connection is over; the message says what the other side did."""


class Gone(Closed):
    """The other side closed the connection or broke it, perhaps because its process has ended."""


class Channel:
    """Messages over a connected socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        connection.setblocking(False)
        with suppress(OSError):  # it may be over already
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._arrived = bytearray()
        self._waiting = bytearray()

    @property
    def behind(self) -> bool:
        """Whether the reader has not taken all that was sent."""
        return bool(self._waiting)

    def receive(self) -> list[bytes]:
        """The whole messages that have arrived."""
        try:
            data = self.socket.recv(AT_ONCE)
        except BlockingIOError:
            return []
        except OSError as error:
            raise Gone(f"broke the connection ({error.strerror or error})") from error
        if not data:
            raise Gone("closed the connection")
        self._acknowledge_at_once()
        self._arrived += data
        return self._whole_messages()

    def _acknowledge_at_once(self) -> None:
        """A program that sends the length and then the rest, as two small writes, waits before the second for the first to be
        acknowledged, which Linux delays by 40 ms. The system forgets the option, so it is set again every time."""
        if sys.platform == "linux":
            with suppress(OSError):
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def send(self, message: bytes) -> None:
        """Sends a message, or keeps it to be sent by `flush`. Closed: the reader does not read, or is gone."""
        if len(message) > LONGEST:
            raise ValueError(f"a message of {len(message):,} bytes is longer than the protocol allows ({LONGEST:,})")
        self._waiting += len(message).to_bytes(2, "big") + message
        self.flush()
        if len(self._waiting) > MOST_WAITING:
            raise Closed("reads nothing that it is sent")

    def flush(self) -> None:
        """Sends as much as goes at once."""
        try:
            while self._waiting:
                del self._waiting[: self.socket.send(self._waiting)]
        except BlockingIOError:
            pass
        except OSError as error:
            raise Gone(f"broke the connection ({error.strerror or error})") from error

    def close(self) -> None:
        with suppress(OSError):
            self.socket.close()

    def _whole_messages(self) -> list[bytes]:
        found, at = [], 0
        while len(self._arrived) - at >= 2:
            end = at + 2 + int.from_bytes(self._arrived[at : at + 2], "big")
            if end > len(self._arrived):
                break
            found.append(bytes(self._arrived[at + 2 : end]))
            at = end
        del self._arrived[:at]
        return found
