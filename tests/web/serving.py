"""A real server of the page for tests, asked over real connections, whose every byte the tests choose."""
from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import psutil
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from tests.processes import words_of
from wavedash.config_file import dump_config, load_config
from wavedash.web.guard import HEADERS

TOKEN = "a-token-of-the-tests"
PATIENCE = 90.0
"""Seconds after which what a test waits for will not come any more; the machine may be busy"""


class Reply(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def content(self) -> Any:
        return json.loads(self.body)


def make_run(root: Path) -> Path:
    """A run that nobody trains, with metrics and without a policy."""
    run = root / "cartpole" / "20261118-090000-abcd"
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.yaml").write_text(dump_config(load_config("cartpole")))
    (run / "metrics.jsonl").write_text("".join(json.dumps({"steps": 100 * i, "recent/return": i}) + "\n" for i in range(1, 11)))
    return run


def until(what: Callable[[], Any], why: str, seconds: float = PATIENCE) -> Any:
    """What the function returns as soon as that is something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.05)
    raise AssertionError(f"in {seconds:g} seconds there was no {why}")


class Server:
    """`wavedash watch`, as a user starts it, in a process of its own."""

    def __init__(self, root: Path, *words: str, host: str = "127.0.0.1") -> None:
        command = [sys.executable, "-m", "wavedash", "watch", *words, "--no-open", "--token", TOKEN, "--host", host]
        self.host, self.errors = host, root / "errors.txt"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True,
                                            env={**os.environ, "WAVEDASH_RUNS": str(root)})
        line = self.process.stdout.readline()
        assert "http://" in line, self.errors.read_text()
        self.port = int(line.partition("http://")[2].split(":")[1].partition("/")[0])

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def send(self, request: bytes) -> Reply:
        """Sends these bytes and reads one answer."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as connection:
            connection.sendall(request)
            return read_reply(connection)

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, headers: dict[str, str | list[str]] | None = None,
            token: str | None = TOKEN) -> Reply:
        """Asks as the page itself would; `headers` are others, or several of a name, and an empty one leaves it out."""
        asked: dict[str, str | list[str]] = {"Host": f"127.0.0.1:{self.port}", "Origin": self.origin, "Connection": "close"}
        if token is not None:
            asked["Authorization"] = f"Bearer {token}"
        if body is not None or method == "POST":
            asked["Content-Length"] = str(len(body or b""))
        asked |= headers or {}
        lines = [f"{name}: {value}" for name, values in asked.items()
                 for value in ([values] if isinstance(values, str) else values) if value != ""]
        return self.send("\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode("latin-1") + (body or b""))

    def json(self, path: str) -> Any:
        reply = self.ask(path)
        assert reply.status == 200, (path, reply)
        return reply.content

    def post(self, path: str, content: Any) -> Reply:
        return self.ask(path, "POST", json.dumps(content).encode(), {"Content-Type": "application/json"})

    @contextmanager
    def socket(self, token: str | None = TOKEN) -> Iterator[ClientConnection]:
        """A viewer."""
        offered = [Subprotocol("wavedash"), *([] if token is None else [Subprotocol(f"token.{token}")])]
        viewer: ClientConnection = connect(  # type: ignore[call-overload,unused-ignore]
            f"ws://127.0.0.1:{self.port}/api/watch", subprotocols=offered, origin=Origin(self.origin), max_size=None,
            compression=None, close_timeout=0.5)  # a viewer with frames that nobody has read does not see its farewell
        with viewer:
            yield viewer

    def rss(self) -> int:
        """Bytes of memory that the process of the server holds."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def connections(self) -> int:
        """How many connections the server has open."""
        return sum(one.status == "ESTABLISHED" and one.laddr.port == self.port
                   for one in psutil.Process(self.process.pid).net_connections("tcp"))

    def stages(self) -> list[psutil.Process]:
        """The processes that play."""
        return [child for child in psutil.Process(self.process.pid).children() if "spawn_main" in " ".join(words_of(child))]

    def interrupt(self) -> int:
        """Ctrl-C, and the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def read_reply(connection: socket.socket) -> Reply:
    """An answer of HTTP: its head, and the body that the head announces."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (piece := connection.recv(65536)):
            return Reply(0, [], data)
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in rest)]
    length = int(dict(headers).get("content-length", 0))
    while len(body) < length and (piece := connection.recv(65536)):
        body += piece
    return Reply(int(first.split()[1]), headers, body)


def has_headers(reply: Reply) -> bool:
    """Whether an answer has the headers that browsers obey."""
    return all((name.lower(), value) in reply.headers for name, value in HEADERS.items())


def next_of(viewer: ClientConnection, kind: str, **content: Any) -> Any:
    """The next message of this type with this content, or the next frame."""
    end = time.monotonic() + PATIENCE
    while (left := end - time.monotonic()) > 0:
        message = viewer.recv(timeout=left)
        if isinstance(message, bytes):
            if kind == "frame":
                return message
        elif (said := json.loads(message))["type"] == kind and content.items() <= said.items():
            return said
    raise AssertionError(f"no {kind} with {content} came")


def tell(viewer: ClientConnection, do: str, **content: Any) -> None:
    viewer.send(json.dumps({"do": do, **content}))
