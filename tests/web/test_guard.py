"""Strangers are refused on every route, method and socket of the server; the routes are those that the application lists."""
from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.routing import Route, WebSocketRoute

from tests.web.serving import TOKEN, Server, has_headers, make_run
from wavedash.web.app import FILES, make_app
from wavedash.web.library import Library
from wavedash.web.players import Players

METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get"]
KEY = "dGhlIHNhbXBsZSBub25jZQ=="


@pytest.fixture(scope="module", params=["127.0.0.1", "0.0.0.0"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("runs")
    make_run(root)
    with Server(root, host=request.param) as server:
        yield server


def paths(id: str = "0" * 12) -> list[str]:
    """All paths of the application, as it lists them itself, and one that it does not have."""
    routes = make_app(Players(Library(Path("nowhere"))), TOKEN).app.routes  # type: ignore[attr-defined]
    assert all(isinstance(route, Route | WebSocketRoute) for route in routes), "a kind of route that these tests do not know"
    return [*(route.path.replace("{id}", id) for route in routes), "/nowhere"]


def evil_hosts(port: int) -> list[str | list[str]]:
    here = f"127.0.0.1:{port}"
    return ["evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", f"127.0.0.1@evil.example:{port}",
            "localhost:99999", f"{here}/", " ", [here, here], ["evil.example", here], [here, "evil.example"]]


def evil_origins(port: int) -> list[str | list[str]]:
    here = f"http://127.0.0.1:{port}"
    return ["http://evil.example", "null", f"http://127.0.0.1:{port + 1}", f"http://localhost:{port}", "file://", f"{here}/",
            f"{here}.evil.example", [here, "http://evil.example"], ["http://evil.example", here], [here, here]]


WRONG = ["wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "", f"{TOKEN}\x00"]


@pytest.mark.slow
def test_no_stranger_gets_anything(server: Server) -> None:
    for path, method in itertools.product(paths(), METHODS):
        for host in evil_hosts(server.port):
            for origin in (server.origin, "", f"http://{host}"):  # the last is a name that was made to lead here
                reply = server.ask(path, method, headers={"Host": host, "Origin": origin})
                assert reply.status in (400, 403, 405), (path, method, host, origin, reply)
        for origin in evil_origins(server.port):
            reply = server.ask(path, method, headers={"Origin": origin})
            assert reply.status in (400, 403, 405), (path, method, origin, reply)
        tokens: list[str | list[str]] = [f"Bearer {token}" for token in WRONG]
        right = f"Bearer {TOKEN}"
        tokens += ["", TOKEN, f"Basic {TOKEN}", [right, "Bearer wrong"], ["Bearer wrong", right], [right, right]]
        open_to_all = method in ("GET", "HEAD") and (server.host == "127.0.0.1" or path in FILES) and "settings" not in path
        for token in tokens:
            reply = server.ask(path, method, headers={"Authorization": token})
            expected = (200, 400, 404, 405) if open_to_all else (400, 401, 405)
            assert reply.status in expected, (path, method, token, reply)
            assert has_headers(reply) or reply.status == 400, (path, method, reply)
    assert server.ask("/api/about").content["writable"] is True, "else all of the above could be refused for another reason"


@pytest.mark.slow
def test_what_changes_something_needs_the_origin_of_the_page(server: Server) -> None:
    for path in paths():
        assert server.ask(path, "POST", b"{}", {"Origin": ""}).status == 403
        assert server.ask(path, "POST", b"{}").status in (404, 405), "with everything right there is only nothing of this id"
        assert server.ask(path, "POST", b"{}", {"Content-Length": ["2", "3"]}).status == 400
        assert server.ask(path, "POST", b"x" * 70_000).status == 413


def upgrade(server: Server, path: str, **others: str | list[str]) -> int:
    """The status of an attempt to open a socket; 101 opens it."""
    headers: dict[str, str | list[str]] = {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": KEY,
        "Sec-WebSocket-Protocol": f"wavedash, token.{TOKEN}",
    }
    names = {"protocol": "Sec-WebSocket-Protocol", "host": "Host", "origin": "Origin"}
    return server.ask(path, headers=headers | {names[name]: value for name, value in others.items()}, token=None).status


@pytest.mark.slow
def test_no_stranger_opens_a_socket(server: Server) -> None:
    for path in paths():
        for host in evil_hosts(server.port):
            for origin in (server.origin, f"http://{host}"):
                assert upgrade(server, path, host=host, origin=origin) in (400, 403), (path, host, origin)
        for origin in (*evil_origins(server.port), ""):
            assert upgrade(server, path, origin=origin) in (400, 403), (path, origin)
        tokens = [f"wavedash, token.{token}" for token in WRONG]
        tokens += ["wavedash", f"token.{TOKEN}", f"wavedash, token.{TOKEN}, token.{TOKEN}", f"wavedash, {TOKEN}", ""]
        for protocol in tokens:
            allowed = server.host == "127.0.0.1" and path == "/api/watch" and protocol.startswith("wavedash")
            status = upgrade(server, path, protocol=protocol)
            assert status == 101 if allowed and "\x00" not in protocol else status in (400, 401, 403), (path, protocol, status)
        assert upgrade(server, path) == (101 if path == "/api/watch" else 403), "with everything right, one path is a socket"


@pytest.mark.slow
@pytest.mark.parametrize("host", ["0.0.0.0", "example.com"])
def test_other_machines_are_served_only_with_a_token_that_was_asked_for(host: str) -> None:
    command = [sys.executable, "-m", "wavedash", "watch", "--no-open", "--host", host]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith(f"error: --host {host} can be reached") and not done.stdout
    assert "--token" in done.stderr and "Traceback" not in done.stderr
