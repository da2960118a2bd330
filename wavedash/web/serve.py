"""Serves the page: finds a free port, makes the token, and answers until it is stopped."""
from __future__ import annotations

import errno
import os
import secrets
import socket
import sys
from contextlib import suppress

import uvicorn

from wavedash.errors import UserError
from wavedash.web.connections import HttpConnection, SocketConnection, limit_kernel_buffers
from wavedash.web.guard import Guard, is_loopback
from wavedash.web.stage.protocol import MOST_COMMAND

FIRST_PORT, LAST_PORT = 8600, 8999
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}
"""Addresses that mean all of this machine's, and what it calls itself"""
TAKEN = (errno.EADDRINUSE, errno.EACCES, getattr(errno, "WSAEADDRINUSE", None), getattr(errno, "WSAEACCES", None))
"""What the system says of a port that somebody else has, or that is not for everybody"""
MOST_CONNECTIONS = 400
"""Connections beyond these are answered that the server is busy: many systems allow a process 1,024 open files"""


def bind(host: str, port: int | None = None) -> socket.socket:
    """A socket on the given port or, without one, on the first free port from 8600. UserError: there is none."""
    family, place = _resolved(host.strip("[]"))
    error: OSError | None = None
    for candidate in range(FIRST_PORT, LAST_PORT + 1) if port is None else [port]:
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            limit_kernel_buffers(bound)
            if os.name == "posix":  # so that a page that is started again finds its port free; Windows means something else
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((place, candidate))
            bound.listen(128)  # not before this is a port taken for certain
            return bound
        except OSError as failed:
            bound.close()
            error = failed
            if failed.errno not in TAKEN:
                raise UserError(f"the page cannot be served on {host}: {failed.strerror or failed}; --host takes an address of "
                                "this machine, such as 127.0.0.1") from failed
    which = f"port {port} is" if port is not None else f"all ports from {FIRST_PORT} to {LAST_PORT} are"
    raise UserError(f"the page cannot be served: {which} taken on {host} ({error}); name another one by --port")


def _resolved(host: str) -> tuple[socket.AddressFamily, str]:
    """The kind of an address, and the address itself. UserError: the name leads nowhere."""
    try:
        family, _, _, _, found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise UserError(f"the page cannot be served: {host!r} is no address of this machine ({error}); --host takes one, such "
                        "as 127.0.0.1") from error
    return family, str(found[0])


def chosen_token(host: str, token: str | None) -> str:
    """The token: a random one on this machine alone; elsewhere only if the user asks for one. UserError: none was named."""
    if token is None and not is_loopback(host):
        raise UserError(f"--host {host} can be reached from other machines: name a secret by --token TOKEN, or --token auto")
    if token is None or token == "auto":
        return secrets.token_urlsafe(24)
    if not 16 <= len(token) <= 200 or not all(letter.isascii() and (letter.isalnum() or letter in "-_.~") for letter in token):
        raise UserError("the token must have 16 to 200 letters, digits, - _ . or ~; --token auto makes one")
    return token


def address(bound: socket.socket, host: str, token: str) -> str:
    """Returns what a user opens. Browsers send no part of it behind # anywhere."""
    name = EVERYWHERE.get(host) or (f"[{host}]" if ":" in host else host)
    return f"http://{name}:{bound.getsockname()[1]}/#token={token}"


class Served:
    """A server on a socket. `run` answers until `stop`, SIGINT or SIGTERM."""

    def __init__(self, app: Guard, bound: socket.socket) -> None:
        config = uvicorn.Config(
            app, log_level="error", access_log=False, lifespan="on", server_header=False, http=HttpConnection,
            ws=SocketConnection, ws_max_size=MOST_COMMAND, ws_ping_interval=20.0, ws_ping_timeout=20.0,
            ws_per_message_deflate=False,  # frames are small, and every viewer's would be packed anew
            limit_concurrency=MOST_CONNECTIONS, timeout_keep_alive=30, timeout_graceful_shutdown=3)
        self._server, self._bound = uvicorn.Server(config), bound

    def run(self) -> None:
        sys.setswitchinterval(0.001)  # so that a thread that reads a large file does not delay frames
        with suppress(KeyboardInterrupt):
            self._server.run([self._bound])

    def stop(self) -> None:
        """May be called from any thread."""
        self._server.should_exit = True
