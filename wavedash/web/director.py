"""Director: decides which stage plays for the viewers.

A player may follow a run. When a newer checkpoint of it is saved, a second stage loads it while the first one plays on; when a
game ends and the second stage is ready, it plays the next one. So viewers see no gap, and a checkpoint that is pruned or
cannot be loaded costs them nothing.
"""
from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from wavedash.errors import UserError
from wavedash.web.games import Game
from wavedash.web.players import Players
from wavedash.web.stages import StageProcess
from wavedash.web.viewer import Said

MOST_ENDING = 2
"""Stages that may be ending while another one begins"""
KEPT = ("terrain", "level", "layout")
"""What viewers have chosen on a stage of walks; the next stage gets it too"""

log = logging.getLogger("uvicorn.error")


class Act:
    """A stage, and what it said last."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.status: Said | None = None
        self.header: Said | None = None
        self.frame: bytes | None = None
        self.over = False
        """Whether its game has ended, and the next one has not begun"""
        self.process: StageProcess | None = None

    @property
    def state(self) -> str:
        return "starting" if self.status is None else str(self.status.content.get("state"))

    @property
    def ready(self) -> bool:
        return self.header is not None and self.frame is not None and self.state in ("playing", "paused")

    def take(self, said: Said | bytes) -> None:
        """Remembers what a viewer must know who comes later."""
        if isinstance(said, bytes):
            self.frame = said
        elif said.kind == "status":
            self.status = said
        elif said.kind == "end":
            self.over = True
        elif said.kind == "header":
            self.header, self.frame, self.over = said, None, False

    def plays(self, game: Game) -> bool:
        """Whether it plays this game. A stage loads the newest checkpoint, which may be newer than what it was asked for."""
        who = None if self.status is None else self.status.content.get("who")
        if self.game == game or not who:
            return self.game == game
        sides = [(name, game.followed[side]) for side, name in who.items() if name is not None and side in game.followed]
        return all(str(name).endswith(f"@{step}") for name, step in sides)

    @property
    def cars(self) -> int:
        """How many players it has, as its header says."""
        players = None if self.header is None else self.header.content.get("players")
        return len(players) if isinstance(players, list) else 0

    def tell(self, command: Mapping[str, Any]) -> bool:
        return self.process is not None and self.state != "failed" and self.process.tell(command)


class Audience(Protocol):
    """Those for whom is played."""

    def show(self, said: Said | bytes) -> None:
        """Is called with all that viewers see."""

    def wishes(self) -> Sequence[Mapping[str, Any]]:
        """Commands that a stage is told when it begins to play for them."""

    def present(self) -> bool:
        """Whether somebody watches."""


class Director:
    """The stage that viewers watch, and the one that prepares to be the next."""

    def __init__(self, players: Players, folder: Path, first: Callable[[], Game], audience: Audience) -> None:
        """`folder`: where recordings go. `first`: what is played first; it may look into folders, and UserError says why
        nothing can be played."""
        self._players, self._folder, self._first, self._audience = players, folder, first, audience
        self._act: Act | None = None
        self._next: Act | None = None
        self._game: Game | None = None
        self._useless: Game | None = None
        """What the last successor could not play"""
        self._waiting: Said | None = None
        """Why nothing is played"""
        self._changing = asyncio.Lock()
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def game(self) -> Game | None:
        """Returns what is played, or was played last."""
        return self._game

    @property
    def cars(self) -> int:
        """How many cars play now."""
        return 0 if self._act is None else self._act.cars

    def shown(self) -> tuple[list[Said], bytes | None]:
        """Returns what a viewer is told who comes now."""
        if self._act is None:
            return ([] if self._waiting is None else [self._waiting]), None
        return [said for said in (self._act.status, self._act.header) if said is not None], self._act.frame

    def tell(self, command: Mapping[str, Any]) -> bool:
        """Hands a command to the stage that viewers watch. False: there is none, or it is too busy."""
        return self._act is not None and self._act.tell(command)

    async def play(self, game: Game) -> None:
        """Plays another game at once. UserError: it cannot be started."""
        async with self._changing:
            await self._play(game)

    async def look(self) -> None:
        """Begins to play if nothing is played, and prepares a successor where there is a newer checkpoint."""
        async with self._changing:
            if not self._audience.present():
                return
            try:
                if self._act is None:
                    await self._play(await asyncio.to_thread(self._chosen))
                    return
                game = await asyncio.to_thread(self._act.game.renewed, self._players)
                if self._act.plays(game) or game == self._useless:
                    return
                if self._act.state == "failed":
                    await self._play(game)
                elif self._next is None:
                    self._next = await self._start(game, {"do": "pause"})  # it shows its first frame, and waits
            except UserError as error:
                self._wait(str(error))

    async def close(self) -> None:
        """Ends all stages."""
        async with self._changing:
            acts, self._act, self._next, self._waiting = (self._act, self._next), None, None, None
            for act in acts:
                self._end(act)
            await asyncio.gather(*self._ending, return_exceptions=True)

    def _chosen(self) -> Game:
        return self._first() if self._game is None else self._game.renewed(self._players)

    def _wait(self, why: str) -> None:
        waiting = Said.of(type="status", state="waiting", text=why)
        if self._act is None and waiting != self._waiting:
            self._waiting = waiting
            self._audience.show(waiting)

    async def _play(self, game: Game) -> None:
        while len(self._ending) >= MOST_ENDING:
            await asyncio.wait(self._ending, return_when=asyncio.FIRST_COMPLETED)
        act = await self._start(game)
        before, self._act, self._game, self._waiting = (self._act, self._next), act, game, None
        self._next = None
        for one in before:
            self._end(one)
        for command in self._audience.wishes():
            act.tell(command)
        for said in self.shown()[0]:
            self._audience.show(said)

    async def _start(self, game: Game, *commands: Mapping[str, Any]) -> Act:
        act = Act(game)
        status = {} if self._act is None or self._act.status is None else self._act.status.content
        chosen = {name: status[name] for name in KEPT if status.get(name) is not None}
        asked = {**chosen, **game.asked(), "folder": str(self._folder), "trust": self._players.library.trust}
        act.process = StageProcess(asked, partial(self._hear, act))
        starting = asyncio.create_task(act.process.start())
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:  # whoever asked is gone; the process must not stay without anybody who ends it
            starting.add_done_callback(lambda done: self._end(act) if done.exception() is None else None)
            raise
        except OSError as error:
            raise UserError(f"the game cannot be started: {error}") from error
        for command in commands:
            act.tell(command)
        return act

    def _end(self, act: Act | None) -> None:
        if act is not None and act.process is not None:
            task = asyncio.create_task(act.process.stop())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def _hear(self, act: Act, said: Said | bytes) -> None:
        """Is called with everything that a stage says."""
        begins_next = isinstance(said, Said) and said.kind == "header" and act.over
        act.take(said)
        if act is self._next and act.state == "failed":
            log.error("a newer checkpoint cannot be shown: %s", act.status.content.get("text") if act.status else "")
            self._useless, self._next = act.game, None
            self._end(act)
        elif act is self._act:
            if begins_next and act.state == "playing" and self._next is not None and self._next.ready:
                self._hand_over(act, self._next)
            else:
                self._audience.show(said)

    def _hand_over(self, before: Act, act: Act) -> None:
        """Shows the stage that has waited instead of the one before."""
        self._act, self._next, self._game = act, None, act.game
        speed = None if before.status is None else before.status.content.get("speed")
        for command in (*self._audience.wishes(), {"do": "continue"}, {"do": "speed", "value": speed or 1.0}):
            act.tell(command)
        for said in (act.header, act.frame):
            if said is not None:
                self._audience.show(said)
        self._end(before)
