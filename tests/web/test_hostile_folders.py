"""Run folders and viewers that mean harm, or are merely broken: the server goes on answering about everything else."""
from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from tests.web.serving import Server, make_run, until
from wavedash.errors import UserError
from wavedash.web.library import READ
from wavedash.web.serve import bind

pytestmark = pytest.mark.slow


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes in folders")
def test_pipes_in_the_place_of_files_stop_nobody(tmp_path: Path) -> None:
    """A reader of a pipe waits until somebody writes into it."""
    good = make_run(tmp_path)
    for number, name in enumerate((*READ, "env.jsonl", "command.txt", "log.txt", "state.json")):
        bad = tmp_path / f"bad-{number}" / "20261118-100000-abcd"
        (bad / "checkpoints").mkdir(parents=True)
        for file in ("config.yaml", "metrics.jsonl"):
            (bad / file).write_bytes((good / file).read_bytes())
        (bad / name).unlink(missing_ok=True)
        os.mkfifo(bad / name)
    with Server(tmp_path) as server:
        runs = server.json("/api/runs")
        assert "cartpole" in {row["title"].split("/")[0] for row in runs}
        for row in runs:
            for path in ("", "/metrics", "/events", "/ladder"):
                assert server.ask(f"/api/runs/{row['id']}{path}").status in (200, 400)
        assert server.ask("/api/players").status == 200 and server.ask("/api/recordings").status == 200
        assert server.interrupt() == 0


@pytest.mark.parametrize("steps", ["1e999", '{"__float__": "inf"}', '"many"', "NaN"])
def test_a_run_with_impossible_metrics_hides_no_other(tmp_path: Path, steps: str) -> None:
    make_run(tmp_path)
    bad = tmp_path / "bad" / "20261118-100000-abcd"
    (bad / "checkpoints").mkdir(parents=True)
    (bad / "config.yaml").write_bytes((tmp_path / "cartpole" / "20261118-090000-abcd" / "config.yaml").read_bytes())
    (bad / "metrics.jsonl").write_text(f'{{"steps": {steps}, "recent/return": 1}}\n')
    with Server(tmp_path) as server:
        assert "cartpole" in {row["title"].split("/")[0] for row in server.json("/api/runs")}


def test_recordings_behind_a_link_are_not_served(tmp_path: Path) -> None:
    run, outside = make_run(tmp_path / "runs"), tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.wdr").write_bytes(b"not for the page")
    (run / "recordings").symlink_to(outside, target_is_directory=True)
    with Server(tmp_path / "runs") as server:
        assert server.json("/api/recordings") == []


def test_silent_connections_are_cut_and_viewers_are_not(tmp_path: Path) -> None:
    """The server has room for only so many connections: those that ask nothing give theirs back."""
    make_run(tmp_path)
    with Server(tmp_path, "idle", "vs", "idle") as server, server.socket() as viewer:
        silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
        until(lambda: server.connections() >= 21, "connection")
        until(lambda: server.connections() == 1, "end of the silent ones")
        viewer.send(json.dumps({"do": "head", "car": None}))
        viewer.recv(timeout=30)
        for connection in silent:
            connection.close()


def test_viewers_without_the_token_do_not_take_heads_from_others(tmp_path: Path) -> None:
    """One looks at a car that does not play, and asks without end; the other still sees the head that it looks at."""
    pytest.importorskip("RocketSim")
    make_run(tmp_path)
    with Server(tmp_path, "champion", "vs", "idle") as server, server.socket() as owner, server.socket(token=None) as stranger:
        owner.send(json.dumps({"do": "head", "car": 0}))
        for number in range(200):
            stranger.send(json.dumps({"do": "head", "car": 7 - number % 2}))
        heads = 0
        while heads < 5:
            message = owner.recv(timeout=60)
            if isinstance(message, str):
                said = json.loads(message)
                assert said["type"] != "refused", said
                heads += said["type"] == "head" and said["car"] == 0 and said["decision"] is not None
        owner.send(json.dumps({"do": "pause"}))
        until(lambda: _says(owner.recv(timeout=60), "paused"), "pause")


def _says(message: str | bytes, state: str) -> bool:
    return isinstance(message, str) and json.loads(message).get("state") == state


def test_an_address_that_is_none_is_named_at_once() -> None:
    with pytest.raises(UserError, match="no address of this machine"):
        bind("nosuch.invalid")
    with pytest.raises(UserError, match="cannot be served on"):
        bind("192.0.2.1")  # an address for examples, which no machine has
