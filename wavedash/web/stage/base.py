"""Stage: what plays for the page, of any kind. Out: where it says what happens."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from wavedash.web.stage.protocol import send_frame, send_message


class Out:
    """Sends what happens on a stage to the server, which passes it on to viewers."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.game = 0
        """The number of the current game; `header` begins the next"""

    def send(self, message: Mapping[str, Any]) -> None:
        send_message(self.connection, message)

    def header(self, header: Mapping[str, Any]) -> None:
        """Begins another game. Its events are sent one by one as they happen."""
        self.game += 1
        self.send({"type": "header", "game": self.game, **{key: value for key, value in header.items() if key != "events"}})

    def frame(self, record: bytes) -> None:
        send_frame(self.connection, self.game, record)

    def event(self, event: Mapping[str, Any]) -> None:
        self.send({"type": "event", "game": self.game, "event": event})

    def end(self, result: Mapping[str, Any]) -> None:
        self.send({"type": "end", "game": self.game, "result": result})

    def head(self, car: int, decision: Mapping[str, Any] | None) -> None:
        """`decision`: None for a car that no policy drives."""
        self.send({"type": "head", "game": self.game, "car": car, "decision": decision})

    def status(self, state: str, text: str = "", **more: Any) -> None:
        """`state`: starting, playing, paused or failed. `more`: `who` plays and other facts."""
        self.send({"type": "status", "state": state, "text": text, **more})

    def refused(self, what: str, why: str) -> None:
        self.send({"type": "refused", "what": what, "why": why})


class Stage(ABC):
    """Something that plays step by step and says what happens. It is made by `Class(asked, out)`: `asked` is what the server
    asks for, with the names of players as `blue` and `orange`, and `folder`, where recordings go. UserError: it cannot be
    played; the server is told.

    Its process (process.py) calls it at the right times, and handles pause, continue, step, speed, restart and record."""

    out: Out

    @abstractmethod
    def begin(self) -> None:
        """Begins a game anew: sends its header and its first frame."""

    @abstractmethod
    def step(self) -> float:
        """Plays one step: sends its frame, and what else happened. Returns the seconds of the game until the next step. Where a
        game has ended, a later call begins the next one."""

    @abstractmethod
    def obey(self, command: Mapping[str, Any]) -> None:
        """Does what a command of its own kind says, such as place, drive, controls, leave or head. UserError: why not."""

    @abstractmethod
    def record(self) -> Path:
        """Writes the current game, at most its last five minutes, as a recording into the folder of the server, and returns
        the file."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Returns what every status says: `who` plays, as {"blue": name, "orange": name}, perhaps more."""

    def close(self) -> None:  # noqa: B027 (optional)
        """Releases processes and memory."""


def whole_number(command: Mapping[str, Any], key: str, count: int) -> int:
    """A number of a command that counts something: from 0 to `count` - 1. UserError: it is not."""
    from wavedash.errors import UserError

    value = command.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
        raise UserError(f"{key} must be a whole number from 0 to {count - 1}")
    return value


def cars_asked(command: Mapping[str, Any], count: int) -> list[int]:
    """The cars whose heads a command asks for: `cars`, or the one `car`; none. UserError: there is no such car."""
    cars = command.get("cars")
    asked = cars if isinstance(cars, list) else [] if command.get("car") is None else [command["car"]]
    return sorted({whole_number({"car": car}, "car", count) for car in asked})
