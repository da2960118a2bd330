"""Connections whose other end takes nothing are cut, also after the application has ended; those of uvicorn itself stay."""
from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from tests.web.serving import PATIENCE, read_reply, until
from wavedash.web import connections
from wavedash.web.connections import HttpConnection, SocketConnection
from wavedash.web.serve import bind

PIECE = bytes(1 << 16)
ASK = "GET / HTTP/1.1\r\nHost: here\r\n"
UPGRADE = f"{ASK}Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {'A' * 22}==\r\n"


async def pour(scope: Any, receive: Any, send: Any) -> None:
    """An application that sends without end, and gives up when a piece is not taken for a while."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
    else:
        await send({"type": "http.response.start", "status": 200, "headers": []})
    try:
        while True:
            async with asyncio.timeout(0.3):
                if scope["type"] == "websocket":
                    await send({"type": "websocket.send", "bytes": PIECE})
                else:
                    await send({"type": "http.response.body", "body": PIECE, "more_body": True})
    except TimeoutError:
        return


@contextmanager
def serving(http: type, ws: type) -> Iterator[tuple[uvicorn.Server, int]]:
    bound = bind("127.0.0.1")
    server = uvicorn.Server(uvicorn.Config(pour, http=http, ws=ws, lifespan="off", log_level="critical", ws_ping_interval=None))
    thread = threading.Thread(target=server.run, args=([bound],))
    thread.start()
    try:
        yield server, bound.getsockname()[1]
    finally:
        server.force_exit = server.should_exit = True
        thread.join(PATIENCE)


@contextmanager
def asking(port: int, request: str) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.sendall(f"{request}\r\n".encode())
        yield connection


@pytest.mark.slow
@pytest.mark.parametrize("request_", [ASK, UPGRADE], ids=["http", "socket"])
def test_who_takes_nothing_is_cut(request_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STALLED_SECONDS", 0.3)
    with serving(HttpConnection, SocketConnection) as (server, port), asking(port, request_):
        until(lambda: server.server_state.connections, "connection")
        until(lambda: not server.server_state.connections, "end of the connection")


@pytest.mark.slow
def test_uvicorn_alone_keeps_who_takes_nothing() -> None:
    """The reason for all this: the application has ended, and its connection has not."""
    with serving(H11Protocol, WebSocketsSansIOProtocol) as (server, port), asking(port, UPGRADE):
        (connection,) = until(lambda: server.server_state.connections, "connection")
        until(lambda: not server.server_state.tasks, "end of the application")
        with pytest.raises(AssertionError):
            until(lambda: not server.server_state.connections, "end of the connection", seconds=2)
        assert connection.transport.is_closing() and connection.transport.get_write_buffer_size() > 0


@pytest.mark.slow
def test_who_is_slow_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STALLED_SECONDS", 0.5)
    with serving(HttpConnection, SocketConnection) as (server, port), asking(port, UPGRADE) as connection:
        assert read_reply(connection).status == 101
        for _ in range(20):  # for longer than one who takes nothing is waited for
            threading.Event().wait(0.1)
            assert connection.recv(1 << 20)
        assert server.server_state.connections
