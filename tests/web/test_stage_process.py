"""The process of a stage: it obeys, says why it cannot, and ends with the server."""
from __future__ import annotations

import json
import multiprocessing as mp
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from wavedash.config import EnvConfig
from wavedash.envs.kinds import kind_of
from wavedash.errors import UserError
from wavedash.recordings import Layout, read
from wavedash.web.stage.process import main
from wavedash.web.stage.protocol import STAMP, TEXT, plain, receive, send_message

pytest.importorskip("RocketSim")
PATIENCE = 60


@contextmanager
def playing(**asked: Any) -> Iterator[tuple[Connection, Any]]:
    context = mp.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=main, args=(there, json.dumps({"blue": "idle", "orange": "idle", **asked})))
    process.start()
    there.close()
    try:
        yield here, process
    finally:
        here.close()
        process.join(PATIENCE)
        assert process.exitcode == 0  # it ends because the connection is closed


def until(here: Connection, kind: str, **content: Any) -> Any:
    """The next message of this kind with this content, or frame."""
    while here.poll(PATIENCE):
        message = receive(here)
        if isinstance(message, bytes):
            if kind == "frame":
                return message
        elif message["type"] == kind and content.items() <= message.items():
            return message
    raise AssertionError(f"no {kind} came")


def test_a_real_game(tmp_path: Path) -> None:
    with playing(blue="champion", orange="chaser", folder=str(tmp_path)) as (here, process):
        header = until(here, "header")
        layout = Layout.from_json(header["record"])
        frame = until(here, "frame")
        assert len(frame) == STAMP.size + layout.dtype.itemsize and STAMP.unpack_from(frame)[0] == header["game"] == 1
        assert until(here, "status", state="playing")["who"] == {"blue": header["players"][0]["name"], "orange": "chaser"}
        send_message(here, {"do": "speed", "value": 8})
        until(here, "status", speed=8.0)
        send_message(here, {"do": "pause"})
        until(here, "status", state="paused")
        send_message(here, {"do": "record"})
        before = read(tmp_path / until(here, "recorded")["file"]).frames  # everything before the pause has arrived by now
        assert not here.poll(0.3)
        send_message(here, {"do": "step"})
        until(here, "frame")
        assert not here.poll(0.3)
        send_message(here, {"do": "record"})
        assert read(tmp_path / until(here, "recorded")["file"]).frames == before + 1
        for wrong in ({"do": "speed", "value": 100}, {"do": "fly"}, {"do": "head", "car": 7}, {"do": "controls"}, {}):
            send_message(here, wrong)
            assert until(here, "refused")["why"]
        here.send_bytes(TEXT + b"[1]")
        assert until(here, "refused")["what"] == "command"
        send_message(here, {"do": "restart"})
        assert until(here, "header")["game"] == 2 and process.is_alive()


def test_a_stage_that_cannot_play_says_why() -> None:
    with playing(orange="nobody-of-this-name") as (here, _):
        assert "there is no player 'nobody-of-this-name'" in until(here, "status", state="failed")["text"]


def test_other_kinds_cannot_be_shown_yet() -> None:
    env = EnvConfig(id="CartPole-v1")
    with pytest.raises(UserError, match="cannot be shown on the page yet"):
        kind_of(env).stage(env)


def test_json_has_no_nan() -> None:
    assert plain({"a": [1.0, float("nan"), (float("inf"), "x")]}) == {"a": [1.0, None, [None, "x"]]}
