"""Viewer: a browser that watches, and what it is sent.

What only the newest of counts (frames, what a bot thinks, how many watch) waits in a slot, where the next one takes its place.
All other text waits in a queue, and a viewer who does not read it is sent away. So one who stalls costs neither memory nor
anybody else's time.
"""
from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.websockets import WebSocket

from wavedash.web.guard import WRITABLE
from wavedash.web.stage.protocol import plain

MOST_TEXTS = 256
"""Text messages that may wait for a viewer"""
MOST_WAITING = 4 << 20
"""Characters of text that may wait for a viewer; the header of a walk, which is the longest message, has less than half"""
SEND_SECONDS = 5.0
"""A viewer who takes longer than this for what waits is sent away"""
SLOTS = ("viewers", "head")
"""Types of text of which only the newest counts"""


@dataclass(frozen=True)
class Said:
    """A text message, encoded once for all viewers."""

    text: str
    content: Mapping[str, Any]

    @classmethod
    def of(cls, **content: Any) -> Said:
        return cls(json.dumps(plain(content), allow_nan=False, separators=(",", ":")), content)

    @property
    def kind(self) -> Any:
        return self.content.get("type")


class Viewer:
    """A browser that watches."""

    def __init__(self, socket: WebSocket) -> None:
        self.socket, self.writable = socket, bool(socket.scope[WRITABLE])
        self.drives: int | None = None
        """The car that it drives"""
        self.head: tuple[int, bool] | None = None
        """The car whose head it looks at, and whether with the observation"""
        self._texts: deque[str] = deque()
        self._slots: dict[str, str] = {}
        self._frame: bytes | None = None
        self._gone = False
        self._wake = asyncio.Event()

    def tell(self, said: Said) -> None:
        """Queues a text message."""
        if said.kind in SLOTS:
            self._slots[said.kind] = said.text
        elif len(self._texts) >= MOST_TEXTS or sum(map(len, self._texts)) + len(said.text) > MOST_WAITING:
            self._gone = True
        else:
            self._texts.append(said.text)
        if said.kind == "header":
            self._frame = None  # it belongs to the game before
            self._slots.pop("head", None)
        self._wake.set()

    def show(self, frame: bytes) -> None:
        """Makes this the next frame that is sent, in place of one that still waits."""
        self._frame = frame
        self._wake.set()

    def refuse(self, what: str, why: str) -> None:
        self.tell(Said.of(type="refused", what=what, why=why))

    async def send_all(self) -> None:
        """Sends until the viewer is gone or too slow: TimeoutError."""
        while not self._gone:
            await self._wake.wait()
            self._wake.clear()
            async with asyncio.timeout(SEND_SECONDS):
                while self._texts:
                    await self.socket.send_text(self._texts.popleft())
                while self._slots:
                    await self.socket.send_text(self._slots.pop(next(iter(self._slots))))
                if self._frame is not None:
                    frame, self._frame = self._frame, None
                    await self.socket.send_bytes(frame)
