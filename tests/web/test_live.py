"""Viewers watch a real game over real sockets: they share it, command it with the token, and cost nothing when they stall."""
from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed

from tests.web.serving import PATIENCE, TOKEN, Server, next_of, read_reply, tell, until
from wavedash.web.connections import BUFFER, READ_AT_ONCE
from wavedash.web.live import MOST_VIEWERS
from wavedash.web.viewer import MOST_TEXTS

pytest.importorskip("RocketSim")
MB = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("runs"), "chaser", "vs", "idle") as server:
        yield server


@pytest.fixture
def watched(server: Server) -> Iterator[Any]:
    """A viewer with the token. The game goes on from test to test."""
    with server.socket() as viewer:
        next_of(viewer, "status", state="playing")
        yield viewer


@pytest.mark.slow
def test_viewers_share_a_game(server: Server, watched: Any) -> None:
    with server.socket(token=None) as other:
        header = next_of(other, "header")
        assert [player["name"] for player in header["players"]] == ["chaser", "idle"]
        assert next_of(other, "viewers")["viewers"] == 2
        frames = {next_of(other, "frame") for _ in range(10)}
        assert len(frames) == 10 and {struct.unpack_from("<Id", frame)[0] for frame in frames} == {header["game"]}
        assert frames & {next_of(watched, "frame") for _ in range(40)}, "both see the same frames"
    assert server.json("/api/about")["watching"] == {"blue": "chaser", "orange": "idle"}


@pytest.mark.slow
def test_only_those_with_the_token_command(server: Server, watched: Any) -> None:
    with server.socket(token=None) as other:
        for do in ("play", "pause", "speed", "restart", "place", "record", "drive", "leave", "controls", "course", "step"):
            tell(other, do, car=0, value=2)
            assert "needs the token" in next_of(other, "refused", what=do)["why"]
        tell(watched, "speed", value=2)
        assert next_of(other, "status", speed=2.0)["state"] == "playing"
        tell(watched, "speed", value=1)
        tell(other, "head", car=1)  # it changes nothing for anybody else
        assert next_of(other, "head")["decision"] is None


@pytest.mark.slow
def test_two_viewers_cannot_drive_one_car(server: Server, watched: Any) -> None:
    with server.socket() as other:
        tell(watched, "drive", car=1)
        assert next_of(other, "status")["humans"] == [] or next_of(other, "status", humans=[1])
        tell(other, "drive", car=1)
        assert "somebody else" in next_of(other, "refused")["why"]
        tell(other, "drive", car=2)
        assert "from 0 to 1" in next_of(other, "refused")["why"]
        tell(other, "controls", controls={})
        assert "take a car first" in next_of(other, "refused")["why"]
        tell(other, "drive", car=0)
        next_of(watched, "status", humans=[0, 1])
    next_of(watched, "status", humans=[1])  # the other has left, and its car goes back to the bot
    tell(watched, "leave")
    next_of(watched, "status", humans=[])


@pytest.mark.slow
def test_another_game_is_played_by_ids_of_players(server: Server, watched: Any) -> None:
    ids = {player["name"]: player["id"] for player in server.json("/api/players")}
    both = {"blue": ids["idle"], "orange": ids["idle"]}
    for wrong in ({}, {"blue": ids["idle"]}, {"blue": "idle", "orange": "idle"}, {**both, "blue": "/etc/passwd"},
                  {**both, "size": 4}, {**both, "size": "1"}, {**both, "simulator": "os:system"},
                  {**both, "start": "os:system"}, {**both, "deterministic": "no"}):
        tell(watched, "play", **wrong)
        assert next_of(watched, "refused", what="play")["why"]
    tell(watched, "play", blue=ids["idle"], orange=ids["chaser"], size=2)
    next_of(watched, "status", state="starting")
    assert [player["name"] for player in next_of(watched, "header")["players"]] == ["idle", "idle", "chaser", "chaser"]
    next_of(watched, "frame")
    tell(watched, "record")
    file = next_of(watched, "recorded")["file"]
    rows = until(lambda: server.json("/api/recordings"), "recording in the list")
    assert "/" not in file and [player["name"] for player in rows[0]["players"]] == ["idle", "idle", "chaser", "chaser"]


@pytest.mark.slow
def test_commands_of_any_form_are_answered_in_words(server: Server, watched: Any) -> None:
    anything = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
                            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3))
    words = st.sampled_from(["play", "speed", "step", "place", "drive", "controls", "leave", "head", "course", "record", "x"])
    keys = st.sampled_from(["blue", "orange", "size", "value", "car", "cars", "ball", "controls", "observation", "terrain"])
    commands = st.one_of(
        anything, st.builds(lambda do, more: {"do": do, **more}, words, st.dictionaries(keys, anything, max_size=3)))

    with server.socket() as fuzzer:
        @settings(max_examples=80, deadline=None)
        @given(st.one_of(commands.map(json.dumps), st.text(max_size=40), st.binary(max_size=40)))
        def send(message: str | bytes) -> None:
            fuzzer.send(message)

        send()
        fuzzer.send("[" * 20_000)
        tell(fuzzer, "no such command")
        next_of(fuzzer, "refused", what="no such command")  # all before it have been read

        def plays_again() -> bool:
            """A stage that is still busy with what was sent drops further commands."""
            tell(fuzzer, "continue")
            tell(fuzzer, "speed", value=1)
            with server.socket() as viewer:
                status = next_of(viewer, "status")
            return (status["state"], status.get("speed")) == ("playing", 1)

        until(plays_again, "game that goes on")
        next_of(fuzzer, "frame")
        fuzzer.send("x" * 100_000)
        with pytest.raises(ConnectionClosed):
            next_of(fuzzer, "refused", what="nothing like this")
    assert not server.errors.read_text(), "nothing of this is a mistake of the server"
    next_of(watched, "frame")


def opened(server: Server) -> socket.socket:
    """A viewer whose socket is opened by hand, so that it can stop reading."""
    return shaken(server)[0]


def shaken(server: Server) -> tuple[socket.socket, bytes]:
    """Such a viewer, and what came right behind the handshake."""
    key = "dGhlIHNhbXBsZSBub25jZQ=="
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(60)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(f"GET /api/watch HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nOrigin: {server.origin}\r\n"
                       f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
                       f"Sec-WebSocket-Protocol: wavedash, token.{TOKEN}\r\n\r\n".encode())
    reply = read_reply(connection)
    assert reply.status == 101
    return connection, reply.body


class Crowd:
    """Viewers who do not read, flood the server, or come and go."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.stalled = [opened(server) for _ in range(10)]
        self.flooding = [opened(server) for _ in range(3)]

    def misbehave(self) -> None:
        """Returns when the server has cut all who do not read."""
        refused = masked(0x81, json.dumps({"do": "x" * 40}).encode())  # is answered by 120 bytes
        ping = masked(0x89, bytes(125))  # is answered by as many
        loads = [(one, refused, 0.01) for one in self.stalled] + [(one, ping, 0.0) for one in self.flooding]
        threads = [threading.Thread(target=self._send, args=load) for load in loads]
        for thread in threads:
            thread.start()
        for number in range(50):
            with self.server.socket(token=None) as passing:
                if number % 3:
                    next_of(passing, "frame")
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "somebody who reads nothing was not cut"
        for one in (*self.stalled, *self.flooding):
            one.close()

    def _send(self, connection: socket.socket, message: bytes, pause: float) -> None:
        """Sends until the connection is cut, and reads nothing. With pauses, the server could answer all if it was read."""
        connection.settimeout(PATIENCE)
        with suppress(ConnectionError):
            while True:
                connection.sendall(message * 50)
                time.sleep(pause)


class Memory:
    """The most memory that a server has held since this began."""

    def __init__(self, server: Server) -> None:
        self.first = self.most = server.rss()
        self._server, self._done = server, threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            self.most = max(self.most, self._server.rss())

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()


def masked(first: int, payload: bytes) -> bytes:
    """A frame of a WebSocket, as clients send it: the mask is zero."""
    assert len(payload) < 126
    return bytes([first, 0x80 | len(payload)]) + bytes(4) + payload


@pytest.mark.slow
def test_viewers_who_stall_or_come_and_go_cost_nothing(server: Server, watched: Any) -> None:
    """Twice, ten viewers stop reading what they are told, three more the answers to their pings, and fifty come and go. Each
    may cost what waits in its buffers; when it was cut, nothing is left of it."""
    seen: list[bytes] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            seen.append(next_of(watched, "frame"))

    quiet, after = server.connections(), list[int]()
    watching = threading.Thread(target=watch)
    watching.start()
    with Memory(server) as memory:
        for _ in range(2):
            crowd, frames = Crowd(server), len(seen)
            crowd.misbehave()
            assert len(seen) > frames + 20, "who reads gets frames meanwhile"
            until(lambda: server.connections() <= quiet, "end of all other connections")
            after.append(server.rss())
    done.set()
    watching.join(PATIENCE)
    # What waits in a connection, in the queue of a viewer, and what was read at once: there, a byte costs up to twenty.
    waiting = 2 * BUFFER + MOST_TEXTS * 200 + READ_AT_ONCE * 20
    bound = len(crowd.stalled + crowd.flooding) * waiting + 8 * MB
    told = [f"{size / MB:.1f} MB" for size in (memory.first, memory.most, *after, bound)]
    assert memory.most - memory.first < bound, told
    assert after[1] - after[0] < 4 * MB, told
    assert len(set(seen)) == len(seen) and not server.errors.read_text()


@pytest.mark.slow
def test_too_many_viewers_are_sent_away(server: Server, watched: Any) -> None:
    crowd = [shaken(server) for _ in range(MOST_VIEWERS)]
    try:
        until(lambda: any(b"watch already" in early + _read(one) for one, early in crowd), "viewer who is sent away")
    finally:
        for one, _ in crowd:
            one.close()
    assert next_of(watched, "frame")


def _read(connection: socket.socket) -> bytes:
    connection.settimeout(0.01)
    try:
        return connection.recv(1 << 16)
    except OSError:
        return b""


@pytest.mark.slow
def test_a_game_is_played_only_while_somebody_watches_and_ends_with_the_server(server: Server) -> None:
    """The last of these tests: it ends the server."""
    with server.socket() as viewer:
        next_of(viewer, "frame")
        (stage,) = server.stages()
        assert stage.nice() >= 10
    until(lambda: not server.stages(), "end of the game")
    with server.socket() as viewer:
        next_of(viewer, "frame")
        (stage,) = server.stages()
        assert server.interrupt() == 0 and not server.errors.read_text(), "Ctrl-C ends it without a word"
    until(lambda: not stage.is_running(), "end of the stage")
