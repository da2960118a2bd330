"""PipeSelector: finds the pipes that have something to read. They are registered once, because every step waits on them."""
from __future__ import annotations

import selectors
import sys
from multiprocessing.connection import Connection, wait
from typing import Generic, TypeVar

T = TypeVar("T")


class PipeSelector(Generic[T]):
    """Maps readable pipes to what they belong to."""

    def __init__(self) -> None:
        self._owners: dict[Connection, T] = {}
        # Windows cannot select on pipes; multiprocessing can, but registers all of them in every call.
        self._selector = None if sys.platform == "win32" else selectors.DefaultSelector()

    def add(self, pipe: Connection, owner: T) -> None:
        self._owners[pipe] = owner
        if self._selector is not None:
            self._selector.register(pipe, selectors.EVENT_READ)

    def remove(self, pipe: Connection) -> None:
        del self._owners[pipe]
        if self._selector is not None:
            self._selector.unregister(pipe)

    def readable(self, timeout: float) -> list[T]:
        if self._selector is None:
            return [self._owners[pipe] for pipe in wait(list(self._owners), timeout)]  # type: ignore[index]
        return [self._owners[key.fileobj] for key, _ in self._selector.select(timeout)]  # type: ignore[index]

    def close(self) -> None:
        if self._selector is not None:
            self._selector.close()
