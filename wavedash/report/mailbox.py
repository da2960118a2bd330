"""A mailbox is a queue between threads whose writer never waits: when it is full, the oldest message is dropped."""
from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from threading import Condition


class Mailbox:
    """A bounded queue of messages. Iteration takes messages, waits for more, and ends once the box is closed and empty."""

    def __init__(self, size: int):
        self.dropped = 0
        self._messages: deque[str] = deque(maxlen=size)
        self._closed = False
        self._changed = Condition()

    def put(self, message: str) -> None:
        with self._changed:
            self.dropped += len(self._messages) == self._messages.maxlen
            self._messages.append(message)
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def closed_within(self, seconds: float) -> bool:
        """Waits at most so long, and returns whether the box is closed."""
        with self._changed:
            return self._changed.wait_for(lambda: self._closed, seconds)

    def __iter__(self) -> Iterator[str]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._messages or self._closed)
                if not self._messages:
                    return
                message = self._messages.popleft()
            yield message  # outside the lock: the reader may take its time
