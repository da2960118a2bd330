"""Ctrl-C in three steps: finish the iteration and save; save right now; leave at once.

    with Interrupts(learner) as interrupts:
        learner.learn()
    sys.exit(interrupts.exit_code)

SIGTERM (Ctrl-Break on Windows) is the first step and never more, because schedulers send it more than once.
"""
from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

TERMINATE = signal.SIGBREAK if os.name == "nt" else signal.SIGTERM  # type: ignore[attr-defined, unused-ignore]
EXIT_CODES = {signal.SIGINT: 130, TERMINATE: 143}
"""What shells expect: 128 + the number of the signal."""


class SaveNow(KeyboardInterrupt):
    """The second Ctrl-C: raised wherever the main thread is, so that the run is saved without finishing its iteration."""


class Stoppable(Protocol):
    """A learner, seen from here."""

    def stop(self, reason: str) -> None: ...


class Interrupts:
    """Turns signals into a stop of the learner, for as long as the block runs. Outside the main thread it does nothing."""

    def __init__(self, learner: Stoppable) -> None:
        self.exit_code = 0
        self._learner = learner
        self._presses = 0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._handle) for number in EXIT_CODES}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        for number, handler in self._previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        return isinstance(error, SaveNow)  # raised here, so it ends here; `exit_code` tells the rest

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.exit_code = self.exit_code or EXIT_CODES[signal.Signals(number)]
        self._presses += number == signal.SIGINT
        if number == TERMINATE or self._presses == 1:
            _tell("Stopping: this iteration is finished, then the run is saved. Ctrl-C again to save right now.")
            self._learner.stop("interrupted")
        elif self._presses > 2:
            os._exit(self.exit_code)
        elif _saving:
            _tell("Saving already. Ctrl-C again leaves at once; what is being saved is then lost.")
        else:
            _tell("Saving right now. Ctrl-C again leaves at once, without saving.")
            raise SaveNow


_saving = 0


@contextmanager
def uninterrupted() -> Iterator[None]:
    """While a save is under way, the second Ctrl-C waits for it instead of breaking it off."""
    global _saving
    _saving += 1
    try:
        yield
    finally:
        _saving -= 1


def _tell(message: str) -> None:
    with suppress(OSError):  # not print: the signal may have come in the middle of another print, which cannot be re-entered
        os.write(2, f"\n{message}\n".encode())
