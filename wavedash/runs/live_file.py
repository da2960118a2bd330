"""`live.yaml` in a run folder: a file that a user edits while the run runs. Its values count from the moment it is saved.

It is read when it has changed and then stayed the same for a moment, so that a file that an editor is still writing is not read
halfway. It is as in a configuration, nested or with dotted keys:

    ppo.learning_rate: 1e-4
    env.rocket.rewards: {goal: 20}
"""
from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wavedash.runs.inbox import Request
from wavedash.runs.links import not_following
from wavedash.yaml_text import LARGEST_TEXT, YamlError, read_yaml

NAME = "live.yaml"
SETTLED = 0.5
"""Seconds that the file must stay the same before it is read"""


class LiveFile:
    """Watches the file of one run. What it holds when the process starts the run does not count: a change of it does."""

    def __init__(self, run: Path) -> None:
        self._path = run / NAME
        self._seen = self._signature()
        self._since = time.monotonic()
        self._handled = True

    def take(self) -> list[Request]:
        """The request that the file makes, if it has changed. It costs one look at its time and size."""
        signature = self._signature()
        if signature != self._seen:
            self._seen, self._since, self._handled = signature, time.monotonic(), False
        if self._handled or signature is None or time.monotonic() - self._since < SETTLED:
            return []
        try:
            with open(self._path, "rb", opener=not_following) as file:
                content = file.read(LARGEST_TEXT + 1)
        except OSError:  # an editor holds it
            return []
        if self._signature() != signature:
            return []
        self._handled = True
        return [_request(content)]

    def _signature(self) -> tuple[int, int, int] | None:
        try:
            facts = self._path.stat()
        except OSError:
            return None
        return facts.st_mtime_ns, facts.st_size, facts.st_ino


def _request(content: bytes) -> Request:
    try:
        values, _ = read_yaml(content.decode("utf-8"))
    except YamlError as error:
        line, what = error.found[0]
        return Request(by=NAME, problem=f"{NAME}:{line}: {what}")
    except UnicodeDecodeError as error:
        return Request(by=NAME, problem=f"{NAME} cannot be read as text: {error}")
    if values is None:
        return Request(by=NAME)
    if not isinstance(values, dict):
        return Request(by=NAME, problem=f"{NAME}:1: expected settings such as 'ppo.learning_rate: 1e-4', got {values!r:.60}")
    return Request(dict(_flat(values)), by=NAME)


def _flat(values: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
