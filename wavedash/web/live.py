"""Live games: viewers watch one game together, over a WebSocket each, and those with the token may command it.

A game is played only while somebody watches.
"""
from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.websockets import WebSocket, WebSocketState

from wavedash.errors import UserError
from wavedash.web.director import Director
from wavedash.web.games import Game, read_game
from wavedash.web.guard import PROTOCOL
from wavedash.web.players import Players
from wavedash.web.stage.protocol import MOST_COMMAND
from wavedash.web.viewer import SEND_SECONDS, Said, Viewer

MOST_VIEWERS = 64
MOST_CARS = 8
GRACE = 5.0
"""Seconds without viewers after which the game ends; whoever loads the page anew is back before"""
LOOK_SECONDS = 3.0
"""How often the director looks for a newer checkpoint"""
HEAD_SECONDS = 0.05
"""The shortest time between two changes of what a stage tells about heads"""
PASSED_ON = ("pause", "continue", "step", "speed", "restart", "place", "record", "course")
"""Commands that go to the stage as they are, with the token"""
NEEDS_TOKEN = "this needs the token: open the address with #token=... that was printed in the terminal"

log = logging.getLogger("uvicorn.error")


class Live:
    """Who watches, and what they command."""

    def __init__(self, players: Players, folder: Path, first: Callable[[], Game], grace: float = GRACE) -> None:
        """`folder`: where recordings go. `first`: see Director."""
        self._players, self._grace = players, grace
        self._director = Director(players, folder, first, self)
        self.viewers: set[Viewer] = set()
        self._wake = asyncio.Event()
        self._attending: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        """Ends the game when the time without viewers is over"""
        self._telling: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def watching(self) -> dict[str, str] | None:
        """Names of those who play, or were the last to play."""
        return None if self._director.game is None else self._director.game.who

    async def serve(self, socket: WebSocket) -> None:
        """Serves one viewer until it is gone."""
        await socket.accept(PROTOCOL)
        if len(self.viewers) >= MOST_VIEWERS:
            await socket.close(1013, f"{MOST_VIEWERS} viewers watch already")
            return
        viewer = Viewer(socket)
        self._join(viewer)
        tasks = [asyncio.create_task(job) for job in (viewer.send_all(), self._listen(viewer))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._leave(viewer)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if socket.application_state is not WebSocketState.DISCONNECTED:
                with suppress(Exception):
                    async with asyncio.timeout(SEND_SECONDS):
                        await socket.close()

    async def close(self) -> None:
        """Ends the game for good: the server ends."""
        self._closed = True
        self._wake.set()
        await self._director.close()
        if self._attending is not None:
            await self._attending

    def present(self) -> bool:
        return bool(self.viewers) and not self._closed

    def _join(self, viewer: Viewer) -> None:
        self.viewers.add(viewer)
        texts, frame = self._director.shown()
        for said in texts:
            viewer.tell(said)
        if frame is not None:
            viewer.show(frame)
        if self._timer is not None:
            self._timer.cancel()
        if self._attending is None:
            self._attending = asyncio.create_task(self._attend())
        self._wake.set()
        self._count()

    def _leave(self, viewer: Viewer) -> None:
        self.viewers.discard(viewer)
        if viewer.drives is not None:
            self._director.tell({"do": "leave", "car": viewer.drives})
        if viewer.head is not None:
            self._tell_heads()
        if not self.viewers:
            self._timer = asyncio.get_running_loop().call_later(self._grace, self._end)
        self._count()

    def _end(self) -> None:
        if not self.viewers:
            self._closing = asyncio.create_task(self._director.close())

    async def _attend(self) -> None:
        """Has the director look now, from time to time, and when a viewer comes."""
        while not self._closed:
            try:
                await self._director.look()
            except Exception:  # the page shows runs even so
                log.exception("the page could not look for a game to show")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), LOOK_SECONDS)
            self._wake.clear()

    def _count(self) -> None:
        self.show(Said.of(type="viewers", viewers=len(self.viewers)))

    def show(self, said: Said | bytes) -> None:
        """Sends something to everybody whom it concerns."""
        if isinstance(said, bytes):
            for viewer in self.viewers:
                viewer.show(said)
            return
        if said.kind == "header":
            self._tell_heads()  # other cars may play now
        for viewer in self.viewers:
            if said.kind == "head" and (viewer.head is None or viewer.head[0] != said.content.get("car")):
                continue
            if said.kind == "refused" and not viewer.writable:
                continue  # it has commanded nothing
            viewer.tell(said)

    # --- commands ----------------------------------------------------------------------------------------------------

    async def _listen(self, viewer: Viewer) -> None:
        """Does what a viewer asks, until it is gone."""
        while (message := await viewer.socket.receive())["type"] != "websocket.disconnect":
            text, what = message.get("text"), "command"
            try:
                command = json.loads(text) if text is not None and len(text) <= MOST_COMMAND else None
                if not isinstance(command, dict):
                    raise UserError("a command is a JSON object")
                what = str(command.get("do"))[:40]
                await self._do(viewer, what, command)
            except (UserError, ValueError, RecursionError) as error:
                viewer.refuse(what, str(error))

    async def _do(self, viewer: Viewer, what: str, command: Mapping[str, Any]) -> None:
        if what == "head":
            viewer.head = None if command.get("car") is None else (_car(command, MOST_CARS), command.get("observation") is True)
            self._tell_heads()
            return
        if not viewer.writable:
            raise UserError(NEEDS_TOKEN)
        if what == "play":
            game = await asyncio.to_thread(read_game, self._players, command)
            for other in self.viewers:
                other.drives = None
            await self._director.play(game)
        elif what == "drive":
            self._drive(viewer, _car(command, self._director.cars))
        elif what in ("controls", "leave"):
            if viewer.drives is None:
                raise UserError("take a car first: this viewer drives none")
            car, viewer.drives = viewer.drives, None if what == "leave" else viewer.drives
            self._pass_on({"do": what, "car": car, "controls": command.get("controls")})
        elif what in PASSED_ON:
            self._pass_on(command)
        else:
            raise UserError("there is no such command")

    def _drive(self, viewer: Viewer, car: int) -> None:
        if any(other.drives == car for other in self.viewers if other is not viewer):
            raise UserError("somebody else drives this car")
        if viewer.drives is not None:
            self._director.tell({"do": "leave", "car": viewer.drives})
        viewer.drives = None
        self._pass_on({"do": "drive", "car": car})
        viewer.drives = car

    def _pass_on(self, command: Mapping[str, Any]) -> None:
        if not self._director.tell(command):
            raise UserError("no game is played now, or it is too busy")

    def wishes(self) -> list[dict[str, Any]]:
        """Returns what a stage must know that begins to play for these viewers: what they look at, and which cars they
        drive."""
        return [self._heads(), *({"do": "drive", "car": viewer.drives} for viewer in self.viewers if viewer.drives is not None)]

    def _heads(self) -> dict[str, Any]:
        cars = self._director.cars
        wanted = [viewer.head for viewer in self.viewers if viewer.head is not None and viewer.head[0] < cars]
        return {"do": "head", "cars": sorted({car for car, _ in wanted}), "observation": any(full for _, full in wanted)}

    def _tell_heads(self) -> None:
        """Tells the stage soon: many wishes become one, so that viewers who may command nothing cannot keep it busy."""
        if self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(HEAD_SECONDS, self._tell_heads_now)

    def _tell_heads_now(self) -> None:
        self._telling = None
        self._director.tell(self._heads())


def _car(command: Mapping[str, Any], cars: int) -> int:
    car = command.get("car")
    if isinstance(car, bool) or not isinstance(car, int) or not 0 <= car < cars:
        raise UserError(f"car must be a number from 0 to {cars - 1}" if cars else "no game is played now")
    return car
