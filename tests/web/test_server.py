"""The server of the page over a real socket: what it answers about a run, and that the guard refuses strangers everywhere."""
from __future__ import annotations

import http.client
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.routing import Route, WebSocketRoute

from wavedash.config_file import dump_config, load_config
from wavedash.web.app import FILES, make_app
from wavedash.web.guard import HEADERS
from wavedash.web.library import Library
from wavedash.web.metrics import MetricsTail
from wavedash.web.serve import bind, chosen_token

TOKEN = "a-token-of-the-tests"


def make_run(root: Path) -> Path:
    run = root / "cartpole" / "20261118-090000-abcd"
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.yaml").write_text(dump_config(load_config("cartpole")))
    (run / "metrics.jsonl").write_text("".join(json.dumps({"steps": 100 * i, "recent/return": i}) + "\n" for i in range(1, 11)))
    return run


class Server:
    """A server in a process of its own."""

    loopback = True

    def __init__(self, root: Path, *options: str) -> None:
        self.process = subprocess.Popen([sys.executable, "-m", "wavedash", "watch", "--no-open", "--token", TOKEN, *options],
                                        stdout=subprocess.PIPE, text=True, env={**os.environ, "WAVEDASH_RUNS": str(root)})
        self.port = int(self.process.stdout.readline().partition("http://")[2].split(":")[1].partition("/")[0])

    def ask(self, path, method="GET", host=None, origin=None, token=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{self.port}")
        for name, value in (("Origin", origin), ("Authorization", token and f"Bearer {token}"),
                            ("Content-Length", None if body is None else str(len(body)))):
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        assert {name: answer.getheader(name) for name in HEADERS} == HEADERS, "every answer has the headers"
        return answer.status, content

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module", params=["127.0.0.1", "0.0.0.0"])
def server(request, tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    make_run(root)
    server = Server(root, "--host", request.param)
    server.loopback = request.param != "0.0.0.0"
    yield server
    server.close()


def paths() -> list[str]:
    """All paths of the application, as it lists them itself."""
    routes = make_app(Library(Path("nowhere")), TOKEN).app.routes  # type: ignore[attr-defined]
    assert all(isinstance(route, Route | WebSocketRoute) for route in routes)
    return [route.path.replace("{id}", "0" * 12) for route in routes]


@pytest.mark.slow
def test_strangers_are_refused_on_every_route_and_method(server) -> None:
    here = f"127.0.0.1:{server.port}"
    hosts = ["evil.example", f"evil.example:{server.port}", "127.0.0.1.evil.example", "localhost:99999", ""]
    origins = ["http://evil.example", "null", f"http://127.0.0.1:{server.port + 1}", "file://"]
    for path, method in itertools.product([*paths(), "/nowhere"], ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]):
        for host in hosts:
            status, _ = server.ask(path, method, host=host or " ", token=TOKEN)
            assert status in (400, 403, 405), (path, method, host, status)
        for origin in origins:
            assert server.ask(path, method, origin=origin, token=TOKEN)[0] in (403, 405), (path, method, origin)
        for token in (None, "wrong", TOKEN[:-1], TOKEN + "x"):
            status, _ = server.ask(path, method, origin=f"http://{here}", token=token)
            open_to_all = method in ("GET", "HEAD") and (server.loopback or path in FILES) and not path.endswith("/settings")
            assert open_to_all or status in (401, 405), (path, method, token, status)
            assert not open_to_all or status in (200, 400, 404, 405), (path, method, status)


@pytest.mark.slow
def test_a_run_is_told_and_large_requests_are_not_read(server) -> None:
    status, body = server.ask("/api/runs", token=TOKEN)
    (run,) = json.loads(body)
    assert status == 200 and (run["steps"], run["return"], run["state"], run["kind"]) == (1000, 10, "stopped", "other")
    found = json.loads(server.ask(f"/api/runs/{run['id']}/metrics?points=5&names=recent/return", token=TOKEN)[1])
    assert found["steps"] == [200, 400, 600, 800, 1000]
    assert found["columns"] == {"recent/return": [1.5, 3.5, 5.5, 7.5, 9.5]}
    details = json.loads(server.ask(f"/api/runs/{run['id']}", token=TOKEN)[1])
    assert "CartPole" in details["config"] and details["checkpoints"] == []
    assert server.ask(f"/api/runs/{run['id']}/ladder", token=TOKEN)[0] == 400
    for wrong in ("points=0", "points=x", "after=nan"):
        assert server.ask(f"/api/runs/{run['id']}/metrics?{wrong}", token=TOKEN)[0] == 400
    for id in ("..", "%2e%2e%2f%2e%2e", "cartpole", "0" * 12, "%00"):
        assert server.ask(f"/api/runs/{id}", token=TOKEN)[0] == 404
    origin = f"http://127.0.0.1:{server.port}"
    assert server.ask("/api/runs", "POST", origin=origin, token=TOKEN, body=b"x" * 70_000)[0] == 413


def test_metrics_are_followed_through_torn_lines_and_cuts(tmp_path) -> None:
    path = tmp_path / "metrics.jsonl"
    lines = [json.dumps({"steps": i, "x": float(i), "phase": f"Phase{1 + i // 4}-P"}) + "\n" for i in range(1, 9)]
    tail = MetricsTail(path)
    tail.refresh()
    assert tail.rows == 0
    whole = "".join(lines).encode()
    for end in range(len(whole) + 1):  # the writer may be seen at any byte
        path.write_bytes(whole[:end])
        tail.refresh()
        fresh = MetricsTail(path)
        fresh.refresh()
        assert {**tail.table(), "edition": 0} == {**fresh.table(), "edition": 0} and tail.rows == whole[:end].count(b"\n")
    assert [phase["step"] for phase in tail.table()["phases"]] == [0, 3, 7]
    other = "".join(lines[:4]) + "".join(json.dumps({"steps": i, "x": -1.0}) + "\n" for i in range(5, 30))
    path.write_text(other)  # a resumed run has cut the file and is past where it was read to
    tail.refresh()
    assert tail.table()["columns"]["x"] == [1.0, 2.0, 3.0, 4.0, *[-1.0] * 25]
    with path.open("a") as file:
        file.write('nonsense\n[1]\n{"steps": 10, "x": 7}\n')  # a file that could not be cut
    tail.refresh()
    assert tail.table()["steps"] == [*range(1, 11)] and tail.table()["columns"]["x"][-1] == 7
    path.unlink()
    tail.refresh()
    assert tail.rows == 0


def test_a_taken_port_is_passed_over_and_other_machines_need_a_token() -> None:
    first = bind("127.0.0.1")
    second = bind("127.0.0.1")
    assert second.getsockname()[1] > first.getsockname()[1] >= 8600
    with pytest.raises(RuntimeError, match="--port"):
        bind("127.0.0.1", first.getsockname()[1])
    first.close()
    second.close()
    with pytest.raises(RuntimeError, match="--token"):
        chosen_token("0.0.0.0", None)
    assert chosen_token("0.0.0.0", "auto") != chosen_token("127.0.0.1", None)
