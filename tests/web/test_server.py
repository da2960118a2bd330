"""What the server answers about runs, players and recordings, and where it serves."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.web.serving import TOKEN, Server, make_run
from wavedash.recordings import Field, Layout, Recording, make_header, read
from wavedash.web.recorded import safe_name
from wavedash.web.serve import bind, chosen_token

LAYOUT = Layout((Field("ball.position", "i16", (3,), 0.5),))


def write_recording(path: Path, title: str, created: str, **more: object) -> bytes:
    header = make_header("rocket", title, "match", 4, 1 / 120, LAYOUT, players=[{"name": "ann", "team": 0}])
    records = LAYOUT.encode({"ball.position": np.arange(30).reshape(10, 3)})
    Recording({**header, "created": created, **more}, LAYOUT, records).write(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("runs")
    make_run(root)
    with Server(root) as server:
        yield server


@pytest.mark.slow
def test_a_run_is_told(server: Server) -> None:
    (run,) = server.json("/api/runs")
    assert (run["steps"], run["return"], run["state"], run["kind"]) == (1000, 10, "stopped", "other")
    assert server.json("/api/about")["run"] == run["id"], "without words, the newest run is shown first"
    found = server.json(f"/api/runs/{run['id']}/metrics?points=5&names=recent/return")
    assert found["steps"] == [200, 400, 600, 800, 1000]
    assert found["columns"] == {"recent/return": [1.5, 3.5, 5.5, 7.5, 9.5]}
    details = server.json(f"/api/runs/{run['id']}")
    assert "CartPole" in details["config"] and details["checkpoints"] == []
    assert server.ask(f"/api/runs/{run['id']}/ladder").status == 400
    for wrong in ("points=0", "points=x", "after=nan"):
        assert server.ask(f"/api/runs/{run['id']}/metrics?{wrong}").status == 400
    refused = server.ask(f"/api/runs/{run['id']}/settings")
    assert refused.status == 409 and "is not being trained now" in refused.content["error"]
    assert server.post(f"/api/runs/{run['id']}/set", {"orders": ["save"]}).status == 409


@pytest.mark.slow
def test_the_server_does_without_torch(server: Server) -> None:
    """A page costs a training little memory: 300 MB less than with torch."""
    players = server.json("/api/players")
    assert {"chaser", "champion-1v1"} <= {player["name"] for player in players} and "kickoff" in server.json("/api/starts")
    (run,) = server.json("/api/runs")
    for part in ("", "/metrics", "/events", "/ladder"):
        server.ask(f"/api/runs/{run['id']}{part}")
    maps = Path(f"/proc/{server.process.pid}/maps")
    if not maps.exists():
        pytest.skip("this system does not tell which libraries a process has loaded")
    assert "numpy" in maps.read_text() and "torch" not in maps.read_text()


@pytest.mark.slow
def test_recordings_are_listed_and_downloaded(server: Server) -> None:
    root = Path(server.errors).parent
    (run,) = root.glob("cartpole/*")
    old = write_recording(root / "recordings" / "a.wdr", "old", "2026-01-01T00:00:00Z", score=[2, 1])
    write_recording(run / "recordings" / 'b";\n\u00e9 ..x.wdr', "new", "2026-02-01T00:00:00Z")
    (root / "recordings" / "torn.wdr").write_bytes(old[: len(old) // 2])
    (root / "recordings" / "other.wdr").write_text("no recording")
    (root / "recordings" / "linked.wdr").symlink_to("/etc/hostname")
    os.mkfifo(root / "recordings" / "pipe.wdr")
    (root / "secret.wdr").write_bytes(old)  # where no recordings are looked for
    threading.Event().wait(1.1)  # folders are looked at once a second
    new, first = server.json("/api/recordings")
    assert (new["title"], new["score"], new["run"]) == ("new", None, server.json("/api/runs")[0]["id"])
    assert (first["title"], first["score"], first["run"], first["bytes"]) == ("old", [2, 1], None, len(old))
    assert first["seconds"] == pytest.approx(10 * 4 / 120) and first["players"] == [{"name": "ann", "team": 0}]
    reply = server.ask(f"/api/recordings/{first['id']}")
    assert reply.body == old and ("content-type", "application/octet-stream") in reply.headers
    assert dict(reply.headers)["content-disposition"] == 'attachment; filename="a.wdr"'
    strange = server.ask(f"/api/recordings/{new['id']}")
    assert dict(strange.headers)["content-disposition"] == 'attachment; filename="b-x.wdr"'
    assert read(strange.body).header["title"] == "new"
    (root / "recordings" / "a.wdr").unlink()
    assert server.ask(f"/api/recordings/{first['id']}").status == 404


@given(st.text())
def test_names_of_downloads_are_of_a_few_signs(stem: str) -> None:
    name = safe_name(stem)
    assert name.endswith(".wdr") and 4 < len(name) <= 104
    assert all(sign.isascii() and (sign.isalnum() or sign in "@_-") for sign in name[:-4])


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


@pytest.mark.slow
def test_ids_of_all_kinds_lead_nowhere(server: Server) -> None:
    routes = ["/api/runs/{}", "/api/runs/{}/metrics", "/api/runs/{}/events", "/api/runs/{}/ladder", "/api/runs/{}/settings",
              "/api/recordings/{}"]

    @settings(max_examples=60, deadline=None)
    @given(st.one_of(st.text(max_size=40), st.sampled_from(["..", "../..", "%2e%2e", "etc/passwd", "\\0", "cartpole"])))
    def lead_nowhere(id: str) -> None:
        encoded = "".join(f"%{byte:02x}" for byte in id.encode("utf-8", "surrogatepass"))
        for route in routes:
            reply = server.ask(route.format(encoded))
            assert reply.status in (404, 200 if id == "" else 404), (route, id, reply)
        body = json.dumps({"orders": ["save"]}).encode()
        assert server.ask(f"/api/runs/{encoded}/set", "POST", body).status == 404

    lead_nowhere()


@pytest.mark.slow
def test_the_second_page_takes_the_next_port_and_a_named_port_must_be_free(server: Server, tmp_path: Path) -> None:
    with Server(tmp_path) as second:
        assert second.port != server.port
        command = [sys.executable, "-m", "wavedash", "watch", "--no-open", "--port", str(server.port)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 2 and f"port {server.port} is taken" in done.stderr and "Traceback" not in done.stderr
        assert second.interrupt() == 0 and not second.errors.read_text(), "Ctrl-C ends it without a word"
    assert server.json("/api/about")["writable"] and TOKEN not in server.errors.read_text()
