"""How a command hands a request to a run, and the run its answer: small files in the folder `live/` of the run.

    <id>.ask.json      written by a command, whole from the moment it has this name
    <id>.taken.json    the same file, once the run has taken it: only one of run and command can rename it
    <id>.answer.json   written by the run, read and removed by the command

Only names are exchanged, so it works wherever both see the same folder, on Windows and between machines too. A command that
waits no longer takes its request back; a request that a killed run had taken is done by the next start.
"""
from __future__ import annotations

import getpass
import os
import secrets
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from wavedash.runs.durable import replace_file
from wavedash.runs.links import not_following
from wavedash.runs.plain import from_json, to_json
from wavedash.yaml_text import LARGEST_TEXT

FOLDER = "live"
ASK, TAKEN, ANSWER = ".ask.json", ".taken.json", ".answer.json"
GRACE = 5.0
"""Seconds that a command waits on for the answer to a request that was taken just before its time was up"""


@dataclass(frozen=True)
class Request:
    """What a user asks of a run: settings to change, all or none of them, and then orders."""

    values: dict[str, Any] = field(default_factory=dict)
    """New values by dotted key"""
    orders: tuple[str, ...] = ()
    """Orders as they were typed: `save`, `milestone=before-aerials`"""
    by: str = ""
    """Who asks"""
    id: str = ""
    """Names its files; empty where nobody waits for an answer"""
    problem: str = ""
    """Why it could not be read"""


class Answer(NamedTuple):
    """What became of a request."""

    done: bool
    said: str


class Inbox:
    """The side of the run."""

    def __init__(self, run: Path) -> None:
        self._folder = run / FOLDER

    def open(self, since: int | None = None) -> None:
        """Makes the folder. Changes that were asked for while nobody listened are done. Orders that are older than `since`,
        when this process took the run over (the time of a file beside, in nanoseconds), were meant for a process that is gone:
        they are refused. None: it is not known when that was, and all of them are."""
        self._folder.mkdir(exist_ok=True)
        for path in sorted(self._folder.iterdir()):
            with suppress(FileNotFoundError):  # its command has just taken it away
                self._look_through(path, older=since is None or path.stat().st_mtime_ns < since)

    def _look_through(self, path: Path, older: bool) -> None:
        """Puts back what a process that is gone had taken, and refuses what was meant for it alone."""
        if path.name.endswith(TAKEN):
            path = path.rename(_named(path, TAKEN, ASK))
        if older and path.name.endswith(ANSWER):
            path.unlink()
        elif older and path.name.endswith(ASK) and (request := _read(path)).orders:
            path.unlink()
            said = "the run was started anew after this was asked for, so nothing was done; give the same command once more"
            with suppress(OSError):  # on a full disk the command is not answered
                self.answer(request, Answer(False, said))

    def take(self) -> list[Request]:
        """The requests since the last call, oldest first. It costs one look into a folder."""
        try:
            with os.scandir(self._folder) as entries:
                asked = sorted(entry.name for entry in entries if entry.name.endswith(ASK))
        except OSError:  # the run folder was deleted
            return []
        requests = []
        for name in asked:
            taken = self._folder / f"{name.removesuffix(ASK)}{TAKEN}"
            with suppress(OSError):  # the command has just taken it back, or Windows has not closed it yet
                os.rename(self._folder / name, taken)
                requests.append(_read(taken))
        return requests

    def answer(self, request: Request, answer: Answer) -> None:
        """Answers a request. OSError: the answer cannot be written; what was asked is done all the same."""
        if not request.id:
            return
        try:
            replace_file(self._folder / f"{request.id}{ANSWER}", to_json(answer._asdict()).encode())
        finally:
            (self._folder / f"{request.id}{TAKEN}").unlink(missing_ok=True)


def ask(run: Path, request: Request, timeout: float, poll: float = 0.05) -> Answer | None:
    """Asks a run and waits for its answer. None: there was none in time, and the request is taken back. OSError: the folder of
    the run cannot be written."""
    folder = run / FOLDER
    folder.mkdir(exist_ok=True)
    name = f"{time.time_ns():020d}-{secrets.token_hex(4)}"
    content = {"values": request.values, "orders": list(request.orders), "by": request.by or user()}
    replace_file(folder / f"{name}{ASK}", to_json(content).encode())
    answer = _wait(folder / f"{name}{ANSWER}", timeout, poll)
    if answer is None:
        try:
            os.rename(folder / f"{name}{ASK}", folder / f"{name}.gone")
            (folder / f"{name}.gone").unlink()
        except OSError:  # the run has it
            answer = _wait(folder / f"{name}{ANSWER}", GRACE, poll) or Answer(
                False, f"{run} has taken the request but has not answered yet: events.jsonl there will say what became of it")
    return answer


def user() -> str:
    """Returns who runs this process."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container without a user of this number
        name = "somebody"
    return f"{name}@{socket.gethostname()}"


def _wait(path: Path, timeout: float, poll: float) -> Answer | None:
    end = time.monotonic() + timeout
    while True:
        with suppress(OSError, ValueError, TypeError):
            answer = Answer(**from_json(path.read_bytes()))
            path.unlink(missing_ok=True)
            return answer
        if time.monotonic() >= end:
            return None
        time.sleep(poll)


def _read(path: Path) -> Request:
    name = path.name.partition(".")[0]
    try:
        with open(path, "rb", opener=not_following) as file:
            content = from_json(file.read(LARGEST_TEXT))
        values, orders, by = content["values"], content["orders"], content["by"]
        if not isinstance(values, dict) or not all(isinstance(order, str) for order in orders) or not isinstance(by, str):
            raise ValueError("unknown content")
        return Request(values, tuple(orders), by, name)
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Request(by="somebody", id=name, problem=f"the request cannot be read: {type(error).__name__}: {error}")


def _named(path: Path, old: str, new: str) -> Path:
    return path.with_name(f"{path.name.removesuffix(old)}{new}")
