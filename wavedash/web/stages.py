"""StageProcess: a stage in a process of its own, as the server sees it.

A thread reads what the stage says and hands it to the server's loop, another one writes what it is told. Both are bounded: a
loop that is busy makes the stage wait, and a stage that does not listen loses commands, so that neither grows in memory.
"""
from __future__ import annotations

import asyncio
import json
import multiprocessing
import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from wavedash.web.stage.process import main
from wavedash.web.stage.protocol import FRAME, MOST_MESSAGE, STAMP, TEXT, send_message
from wavedash.web.viewer import Said

AHEAD = 64
"""Messages of a stage that may wait for the loop, and commands that may wait for a stage"""
SECONDS_TO_END = 2.0
"""A stage that has not ended so long after its connection was closed is killed"""

Heard = Callable[[Said | bytes], None]


class StageProcess:
    """One stage, from its start to its end. `heard` is called in the loop with all that it says; the last message is always a
    status, `failed` if the stage ended by itself."""

    def __init__(self, asked: Mapping[str, Any], heard: Heard) -> None:
        self._asked, self._heard = json.dumps(asked), heard
        self._loop = asyncio.get_running_loop()
        self._room = threading.Semaphore(AHEAD)
        self._told: queue.Queue[Mapping[str, Any] | None] = queue.Queue(AHEAD)
        self._closed = False
        self._reaping = threading.Lock()

    async def start(self) -> None:
        """Starts the process. OSError: the system does not allow another one."""
        await asyncio.to_thread(self._start)

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._connection, theirs = spawn.Pipe()
        self._process = spawn.Process(target=main, args=(theirs, self._asked), name="wavedash-stage")
        self._process.start()
        theirs.close()  # so that each side sees when the other is gone
        for target in (self._read, self._write):
            threading.Thread(target=target, daemon=True, name=f"stage {target.__name__}").start()

    def tell(self, command: Mapping[str, Any]) -> bool:
        """Hands a command to the stage. False: it is too busy, and the command is dropped."""
        try:
            self._told.put_nowait(command)
        except queue.Full:
            return False
        return True

    async def stop(self) -> None:
        """Ends the process; nothing is heard of it any more."""
        self._closed = True
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        with suppress(queue.Full):
            self._told.put_nowait(None)
        with suppress(OSError):
            self._connection.close()
        with self._reaping:
            self._process.join(SECONDS_TO_END)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()

    def _read(self) -> None:
        failed = False
        while True:
            try:
                message = _said(self._connection.recv_bytes(MOST_MESSAGE))
            except ValueError:
                continue  # no message of a stage: what comes next may be one
            except (EOFError, OSError, TypeError):  # TypeError: the connection was closed by another thread
                break
            if isinstance(message, Said) and message.kind == "status":
                failed = message.content.get("state") == "failed"
            self._room.acquire()
            self._hand_over(message)
        if not self._closed and not failed:  # else it has said why it ends
            with self._reaping:
                self._process.join(SECONDS_TO_END)
                code = self._process.exitcode
            self._hand_over(Said.of(type="status", state="failed", text=f"the process of the game has ended ({code})"))

    def _hand_over(self, message: Said | bytes) -> None:
        def hear() -> None:
            self._room.release()
            if not self._closed:
                self._heard(message)

        with suppress(RuntimeError):  # the server is ending
            self._loop.call_soon_threadsafe(hear)

    def _write(self) -> None:
        while (command := self._told.get()) is not None:
            try:
                send_message(self._connection, command)
            except (OSError, ValueError, TypeError):
                return


def _said(data: bytes) -> Said | bytes:
    """A message of a stage: the bytes of a frame from its game number on, or a text with its content. ValueError: neither."""
    if data[:1] == FRAME and len(data) > STAMP.size:
        return data[1:]
    text = data[1:].decode() if data[:1] == TEXT else "null"
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError("a message of a stage is a frame or a JSON object")
    return Said(text, content)
