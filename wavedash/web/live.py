"""Live games: viewers watch one game together, over a WebSocket each, and those with the token may command it.

A viewer who is slow gets the newest frame and misses those before it. Text is never dropped, so a viewer who does not read it
is sent away. So one who stalls costs neither memory nor anybody else's time. A game is played only while somebody watches.
"""
from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from wavedash.errors import UserError
from wavedash.web.games import Game, read_game
from wavedash.web.guard import PROTOCOL, WRITABLE
from wavedash.web.library import Library
from wavedash.web.stage.protocol import MOST_COMMAND, Message, plain
from wavedash.web.stages import StageProcess

MOST_VIEWERS = 64
MOST_TEXTS = 256
"""Text messages that may wait for a viewer"""
SEND_SECONDS = 5.0
"""A viewer who takes longer than this for one message is sent away"""
GRACE = 10.0
"""Seconds without viewers after which the game ends"""
PASSED_ON = ("pause", "continue", "step", "speed", "restart", "place", "course", "record")
"""Commands that go to the stage as they are, with the token"""


class Viewer:
    """A browser that watches."""

    def __init__(self, socket: WebSocket) -> None:
        self.socket, self.writable = socket, bool(socket.scope[WRITABLE])
        self.drives: int | None = None
        """The car that it drives"""
        self.head: tuple[int, bool] | None = None
        """The car whose head it looks at, and whether with the observation"""
        self.gone = False
        self._texts: deque[str] = deque()
        self._frame: bytes | None = None
        self._wake = asyncio.Event()

    def tell(self, message: Mapping[str, Any]) -> None:
        """Queues a text message."""
        if message.get("type") == "header":
            self._frame = None  # it belongs to the game before
        if len(self._texts) >= MOST_TEXTS:
            self.gone = True
        else:
            self._texts.append(json.dumps(plain(message), allow_nan=False, separators=(",", ":")))
        self._wake.set()

    def show(self, frame: bytes) -> None:
        """Makes this the next frame that is sent, in place of one that still waits."""
        self._frame = frame
        self._wake.set()

    async def send_all(self) -> None:
        """Sends until the viewer is gone or too slow."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._texts:
                await asyncio.wait_for(self.socket.send_text(self._texts.popleft()), SEND_SECONDS)
            if self._frame is not None:
                frame, self._frame = self._frame, None
                await asyncio.wait_for(self.socket.send_bytes(frame), SEND_SECONDS)
            if self.gone:
                return

    def refuse(self, what: str, why: str) -> None:
        self.tell({"type": "refused", "what": what, "why": why})


class Live:
    """The game that viewers watch, and who watches it."""

    def __init__(self, library: Library, folder: Path, first: Callable[[], Game], grace: float = GRACE) -> None:
        """`folder`: where recordings go. `first`: says what is played first; it may look into folders, and UserError says why
        nothing can be played."""
        self._library, self._folder, self._first, self._grace = library, folder, first, grace
        self.viewers: set[Viewer] = set()
        self._stage: StageProcess | None = None
        self._game: Game | None = None
        self._shown: dict[str, Message] = {}
        """The last status and header: what a viewer is told who comes later"""
        self._frame: bytes | None = None
        self._changing = asyncio.Lock()
        self._ending: asyncio.Task[None] | None = None

    @property
    def playing(self) -> bool:
        return self._stage is not None

    @property
    def watching(self) -> dict[str, str] | None:
        """Names of those who play, or were the last to play."""
        return None if self._game is None else self._game.who

    async def serve(self, socket: WebSocket) -> None:
        """Serves one viewer until it is gone."""
        await socket.accept(PROTOCOL)
        if len(self.viewers) >= MOST_VIEWERS:
            await socket.close(1013, f"{MOST_VIEWERS} viewers watch already")
            return
        viewer = Viewer(socket)
        self._join(viewer)
        tasks = [asyncio.create_task(job) for job in (viewer.send_all(), self._listen(viewer), self._begin())]
        try:
            # The third one only starts a game; a viewer is gone when one of the other two ends.
            await asyncio.wait(tasks[:2], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks[:2]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._leave(viewer)
            if socket.application_state is not WebSocketState.DISCONNECTED:
                with suppress(Exception):
                    await asyncio.wait_for(socket.close(), SEND_SECONDS)

    def _join(self, viewer: Viewer) -> None:
        self.viewers.add(viewer)
        if self._ending is not None:
            self._ending.cancel()
        for message in self._shown.values():
            viewer.tell(message)
        if self._frame is not None:
            viewer.show(self._frame)
        self._count()

    def _leave(self, viewer: Viewer) -> None:
        self.viewers.discard(viewer)
        if viewer.drives is not None:
            self._tell({"do": "leave", "car": viewer.drives})
        if viewer.head is not None:
            self._tell_heads()
        if not self.viewers:
            self._ending = asyncio.create_task(self._end_after_grace())
        self._count()

    def _count(self) -> None:
        for viewer in self.viewers:
            viewer.tell({"type": "viewers", "viewers": len(self.viewers)})

    # --- the stage ---------------------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        """Starts the first game, if none is played."""
        async with self._changing:
            if self._stage is None:
                try:
                    await self._play(self._game if self._game is not None else await asyncio.to_thread(self._first))
                except UserError as error:
                    self._hear({"type": "status", "state": "waiting", "text": str(error)})

    async def _play(self, game: Game) -> None:
        if self._stage is not None:
            await self._stage.stop()
        self._shown, self._frame, self._game = {}, None, game
        for viewer in self.viewers:
            viewer.drives = None
        self._stage = StageProcess({**game.asked(), "folder": str(self._folder), "trust": self._library.trust}, self._hear)
        try:
            await self._stage.start()
        except OSError as error:
            self._stage = None
            raise UserError(f"the game cannot be started: {error}") from error
        self._tell_heads()

    async def _end_after_grace(self) -> None:
        await asyncio.sleep(self._grace)
        await self.close()

    async def close(self) -> None:
        """Ends the game."""
        async with self._changing:
            stage, self._stage = self._stage, None
            self._shown, self._frame = {}, None
            if stage is not None:
                await stage.stop()

    def _hear(self, message: Message | bytes) -> None:
        """Is called with everything that the stage says."""
        if isinstance(message, bytes):
            self._frame = message
            for viewer in self.viewers:
                viewer.show(message)
            return
        kind = message.get("type")
        if kind in ("status", "header"):
            self._shown[kind] = message
        if kind == "header":
            self._frame = None
        for viewer in self.viewers:
            if kind != "head" or (viewer.head is not None and viewer.head[0] == message.get("car")):
                viewer.tell(message)

    def _tell(self, command: Mapping[str, Any]) -> bool:
        return self._stage is not None and self._stage.tell(command)

    def _tell_heads(self) -> None:
        wanted = [viewer.head for viewer in self.viewers if viewer.head is not None]
        self._tell({"do": "head", "cars": sorted({car for car, _ in wanted}), "observation": any(full for _, full in wanted)})

    # --- commands ----------------------------------------------------------------------------------------------------

    async def _listen(self, viewer: Viewer) -> None:
        """Does what a viewer asks, until it is gone."""
        with suppress(WebSocketDisconnect):
            while True:
                text = await viewer.socket.receive_text()
                what = "command"
                try:
                    command = json.loads(text) if len(text) <= MOST_COMMAND else None
                    if not isinstance(command, dict):
                        raise UserError("a command is a JSON object")
                    what = str(command.get("do"))[:40]
                    await self._do(viewer, what, command)
                except (UserError, ValueError, RecursionError) as error:
                    viewer.refuse(what, str(error))

    async def _do(self, viewer: Viewer, what: str, command: Mapping[str, Any]) -> None:
        if what == "head":
            car = command.get("car")
            if car is not None and (isinstance(car, bool) or not isinstance(car, int) or not 0 <= car < 8):
                raise UserError("car must be the number of a car")
            viewer.head = None if car is None else (car, command.get("observation") is True)
            self._tell_heads()
            return
        if not viewer.writable:
            raise UserError("this needs the token: open the address with #token=... that was printed in the terminal")
        if what == "play":
            game = await asyncio.to_thread(read_game, self._library, command)
            async with self._changing:
                await self._play(game)
        elif what == "drive":
            car = command.get("car")
            if any(other.drives == car for other in self.viewers if other is not viewer):
                raise UserError("somebody else drives this car")
            if viewer.drives is not None:
                self._tell({"do": "leave", "car": viewer.drives})
            viewer.drives = car if isinstance(car, int) else None
            self._pass_on(viewer, {"do": "drive", "car": car})
        elif what in ("controls", "leave"):
            if viewer.drives is None:
                raise UserError("take a car first: this viewer drives none")
            self._pass_on(viewer, {"do": what, "car": viewer.drives, "controls": command.get("controls")})
            viewer.drives = None if what == "leave" else viewer.drives
        elif what in PASSED_ON:
            self._pass_on(viewer, command)
        else:
            raise UserError("there is no such command")

    def _pass_on(self, viewer: Viewer, command: Mapping[str, Any]) -> None:
        if not self._tell(command):
            raise UserError("no game is played now, or it is too busy")
