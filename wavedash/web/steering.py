"""Steering: what the page asks of a run that runs, through the run's inbox, as `wavedash set` does.

A run answers between two iterations, which may take long. So those who wait do so in a few threads of their own, where they
delay nobody else, and everybody who wants to know the settings of a run waits for the same answer.
"""
from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from wavedash.errors import UserError
from wavedash.runs.inbox import Answer, Request, ask
from wavedash.runs.plain import NotPlainError, to_json
from wavedash.web.options import about
from wavedash.web.run import Run
from wavedash.web.run_data import is_trained
from wavedash.yaml_text import YamlError, read_yaml

MOST_ASKS = 4
"""Questions, and changes, that may wait for the answers of runs at the same time"""
LIST_SECONDS, SET_SECONDS = 20.0, 60.0
"""How long a run may take to tell its settings, and to do what it is asked"""
FRESH = 1.0
"""Seconds for which settings that a run has told are told again"""
MOST_KEYS, LONGEST_KEY = 200, 300
BY = "page"
"""Who asks, in `events.jsonl`"""


class NotTrainedError(UserError):
    """The run is asked for something, and no process trains it."""


class BusyError(UserError):
    """Too many ask at the same time."""


class NoAnswerError(UserError):
    """The run did not answer in time."""


class Steering:
    """Asks runs for what viewers want. Its methods belong to the server's loop."""

    def __init__(self, list_seconds: float = LIST_SECONDS, set_seconds: float = SET_SECONDS) -> None:
        self._list_seconds, self._set_seconds = list_seconds, set_seconds
        self._waiting = {"list": 0, "set": 0}
        self._told: dict[str, tuple[float, asyncio.Future[dict[str, Any]]]] = {}
        """When each run was asked for its settings, and what it tells"""

    async def settings(self, run: Run) -> dict[str, Any]:
        """The settings of a run that may change now, with their values, and the orders that it obeys."""
        now = time.monotonic()
        self._told = {id: (at, told) for id, (at, told) in self._told.items() if not told.done() or now - at < FRESH}
        if run.id not in self._told:
            told = asyncio.ensure_future(self._list(run))
            told.add_done_callback(lambda done: done.cancelled() or done.exception())  # somebody may not wait for it any more
            self._told[run.id] = now, told
        return await asyncio.shield(self._told[run.id][1])

    async def set(self, run: Run, asked: Any) -> dict[str, Any]:
        """Changes settings, and has orders obeyed: `{"values": {key: value}, "orders": [...]}`."""
        request = read_asked(asked)
        answer = await self._ask("set", run, request, self._set_seconds)
        self._told.pop(run.id, None)  # the settings are others now
        return {"done": answer.done, "said": answer.said}

    async def _list(self, run: Run) -> dict[str, Any]:
        answer = await self._ask("list", run, Request(orders=("list",), by=BY), self._list_seconds)
        if not answer.done:
            raise NoAnswerError(answer.said)
        return listed(answer.said)

    async def _ask(self, what: str, run: Run, request: Request, seconds: float) -> Answer:
        if self._waiting[what] >= MOST_ASKS:
            raise BusyError("several requests wait for their answers already: try again in a moment")
        self._waiting[what] += 1
        answer = _in_thread(run, request, seconds)
        answer.add_done_callback(lambda _: self._release(what))  # not when the viewer is gone: the thread waits even so
        return await asyncio.shield(answer)

    def _release(self, what: str) -> None:
        self._waiting[what] -= 1


def _in_thread(run: Run, request: Request, seconds: float) -> asyncio.Future[Answer]:
    """Asks in a thread that nobody waits for when the server ends, as a pool's threads would be."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Answer] = loop.create_future()

    def hand_over(found: Answer | BaseException) -> None:
        if isinstance(found, BaseException):
            answer.set_exception(found)
            answer.exception()  # where nobody waits any more, it is nobody's
        else:
            answer.set_result(found)

    def work() -> None:
        try:
            found: Answer | BaseException = _ask(run, request, seconds)
        except BaseException as error:
            found = error
        with suppress(RuntimeError):  # the server has ended
            loop.call_soon_threadsafe(hand_over, found)

    threading.Thread(target=work, daemon=True, name="asks a run").start()
    return answer


def _ask(run: Run, request: Request, seconds: float) -> Answer:
    if not is_trained(run):
        raise NotTrainedError(f"{run.title} is not being trained now. Settings of a run that has stopped change when it goes "
                              "on: wavedash resume RUN key=value")
    try:
        answer = ask(run.folder.path, request, seconds)
    except OSError as error:
        raise UserError(f"the folder of {run.title} cannot be written: {error.strerror or error}") from None
    if answer is None:
        raise NoAnswerError(f"{run.title} did not answer within {seconds:g} seconds, and nothing was changed. It may be busy "
                            "with a long iteration, or it is not running any more")
    return answer


def read_asked(asked: Any) -> Request:
    """Returns what a client asks of a run. UserError: it is not of the form that it must have."""
    if not isinstance(asked, Mapping) or not set(asked) <= {"values", "orders"}:
        raise UserError('expected {"values": {key: value}, "orders": [word]}')
    values, orders = asked.get("values", {}), asked.get("orders", [])
    if not isinstance(values, Mapping) or not all(_is_short(key) for key in values):
        raise UserError("values must be settings by their dotted keys, such as ppo.learning_rate")
    if not isinstance(orders, list) or not all(_is_short(order) for order in orders):
        raise UserError("orders must be a list of words, such as save")
    if not 1 <= len(values) + len(orders) <= MOST_KEYS:
        raise UserError(f"name 1 to {MOST_KEYS} settings and orders")
    try:
        to_json(dict(values))
        json.dumps(dict(values), ensure_ascii=False).encode()
    except (NotPlainError, UnicodeEncodeError) as error:
        raise UserError(f"these values cannot be handed to a run: {error}") from None
    return Request(dict(values), tuple(orders), BY)


def listed(said: str) -> dict[str, Any]:
    """Returns what a run says to the order `list`: lines of `key=value` and one of all orders."""
    settings, orders = [], list[str]()
    for line in said.splitlines():
        key, equals, text = line.partition("=")
        if line.startswith("orders: "):
            orders = [word.strip() for word in line.removeprefix("orders: ").split(",") if word.strip()]
        elif equals:
            try:
                value, _ = read_yaml(text)
            except YamlError:
                value = text
            settings.append({"key": key, "value": value, **about(key)})
    return {"settings": settings, "orders": orders}


def _is_short(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text) <= LONGEST_KEY and text.isprintable()
