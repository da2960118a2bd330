"""Starts the server of the page: finds a free port, makes the token, and serves until it is stopped.

    python -m wavedash.web.serve [RUNS] [--port 8600] [--host 127.0.0.1] [--token TOKEN]
"""
from __future__ import annotations

import argparse
import secrets
import socket
from pathlib import Path

import uvicorn

from wavedash.errors import UserError
from wavedash.web.app import make_app
from wavedash.web.guard import is_loopback
from wavedash.web.library import Library
from wavedash.web.stage.protocol import MOST_COMMAND

FIRST_PORT, LAST_PORT = 8600, 8999


def bind(host: str, port: int | None = None) -> socket.socket:
    """A socket on the given port or, without one, on the first free port from 8600. UserError: there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    error: OSError | None = None
    for candidate in range(FIRST_PORT, LAST_PORT + 1) if port is None else [port]:
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            bound.bind((host, candidate))
            bound.listen(128)  # not before this is a port taken for certain
            return bound
        except OSError as failed:
            bound.close()
            error = failed
    which = f"port {port} is" if port is not None else f"all ports from {FIRST_PORT} to {LAST_PORT} are"
    raise UserError(f"the page cannot be served: {which} taken on {host} ({error}); name another one by --port")


def chosen_token(host: str, token: str | None) -> str:
    """The token: a random one on this machine alone; elsewhere only if the user asks for one. UserError: none was named."""
    if token is None and not is_loopback(host):
        raise UserError(f"--host {host} can be reached from other machines: name a secret by --token TOKEN, or --token auto")
    if token is None or token == "auto":
        return secrets.token_urlsafe(24)
    if not 16 <= len(token) <= 200 or not all(letter.isascii() and (letter.isalnum() or letter in "-_.~") for letter in token):
        raise UserError("the token must have 16 to 200 letters, digits, - _ . or ~; --token auto makes one")
    return token


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="?", type=Path)
    parser.add_argument("--port", type=int)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--token")
    options = parser.parse_args()
    try:
        token = chosen_token(options.host, options.token)
        bound = bind(options.host, options.port)
    except UserError as error:
        parser.exit(2, f"error: {error}\n")
    app = make_app(Library(options.runs), token, options.host)
    host = f"[{options.host}]" if ":" in options.host else options.host
    print(f"http://{host}:{bound.getsockname()[1]}/#token={token}", flush=True)
    config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="on", ws="websockets-sansio",
                            server_header=False, timeout_keep_alive=30, ws_max_size=MOST_COMMAND, timeout_graceful_shutdown=3)
    uvicorn.Server(config).run([bound])


if __name__ == "__main__":
    main()
