"""Connections of browsers: those that take nothing of what was sent are cut.

What waits for a browser is in the buffer of its connection, which asyncio keeps for as long as the connection is open. uvicorn
waits before it adds to a full buffer, but even a connection that it closes stays until its buffer is sent. So the connection of
a browser that takes not a single byte for some seconds is aborted, whatever it was doing.
"""
from __future__ import annotations

import asyncio
import socket
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

STALLED_SECONDS = 5.0
"""A connection whose buffer does not shrink for so long is cut"""
SILENT_SECONDS = 10.0
"""How long a connection may take to ask its first question"""
FAREWELL_SECONDS = 2.0
"""How long a viewer who is sent away may take to say farewell"""
BUFFER = 1 << 16
"""Bytes that may wait in a connection before senders wait"""
READ_AT_ONCE = 1 << 14
"""Bytes of a viewer's commands that are taken from the system at once: each of many small ones becomes some objects"""
KERNEL_BUFFER = 1 << 17
"""Bytes of a connection that the system keeps: frames in there are late already when they are sent"""


class _Impatient:
    """Watches the buffer of a connection while there is something in it that the connection should be rid of."""

    transport: Any
    _timer: asyncio.TimerHandle | None = None
    _left = 0

    def connection_made(self, transport: Any) -> None:
        transport.set_write_buffer_limits(BUFFER)
        super().connection_made(transport)  # type: ignore[misc]

    def pause_writing(self) -> None:
        super().pause_writing()  # type: ignore[misc]
        self._watch()

    def resume_writing(self) -> None:
        self._forget()
        super().resume_writing()  # type: ignore[misc]

    def _watch(self) -> None:
        if self._timer is None:
            self._left = self.transport.get_write_buffer_size()
            self._timer = asyncio.get_running_loop().call_later(STALLED_SECONDS, self._look)

    def _look(self) -> None:
        self._timer = None
        left = self.transport.get_write_buffer_size()
        if left >= self._left:
            self.transport.abort()
        elif left > 0:
            self._watch()

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)  # type: ignore[misc]


class HttpConnection(_Impatient, H11Protocol):
    """A connection for questions. One that does not ask its first in some seconds is cut: the server has only so many."""

    _first: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._first = asyncio.get_running_loop().call_later(SILENT_SECONDS, self._cut)

    def _cut(self) -> None:
        if self.cycle is None and self.transport.get_protocol() is self:  # no question has come whole, and it is no socket now
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._first is not None:
            self._first.cancel()
        super().connection_lost(exc)


class SocketConnection(_Impatient, WebSocketsSansIOProtocol):
    """A connection of a viewer."""

    def connection_made(self, transport: Any) -> None:
        self.close_timeout = FAREWELL_SECONDS
        if hasattr(transport, "max_size"):  # the loop of Windows has no such thing, and reads less
            transport.max_size = READ_AT_ONCE
        super().connection_made(transport)

    def handle_ping(self) -> None:
        """Answers a ping, unless the answers to earlier ones were not taken: uvicorn would keep them all."""
        if self.transport.get_write_buffer_size() > BUFFER:
            self.transport.abort()
        else:
            super().handle_ping()

    async def run_asgi(self) -> None:
        await super().run_asgi()
        if self.transport.get_write_buffer_size() > 0:
            self._watch()  # it is closing, which ends when all is sent


def limit_kernel_buffers(listening: socket.socket) -> None:
    """Limits the buffers of all connections that a socket will accept."""
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BUFFER)
