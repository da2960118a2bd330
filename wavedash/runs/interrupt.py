"""Ctrl-C works in three steps: finish the iteration and save; save right now; leave at once.

    with Interrupts(learner) as interrupts:
        learner.learn()
    sys.exit(interrupts.exit_code)

SIGTERM (Ctrl-Break on Windows) and SIGHUP (the terminal was closed) are only ever the first step, because schedulers and shells
send them more than once.
"""
from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from wavedash.ppo.listener import IterationReport, Listener

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

TERMINATE = signal.SIGBREAK if os.name == "nt" else signal.SIGTERM  # type: ignore[attr-defined, unused-ignore]
HANG_UP: int | None = getattr(signal, "SIGHUP", None)
EXIT_CODES: dict[int, int] = {signal.SIGINT: 130, TERMINATE: 143, **({HANG_UP: 129} if HANG_UP else {})}
"""The exit codes that shells expect: 128 + the number of the signal"""


class SaveNow(KeyboardInterrupt):
    """Is raised by the second Ctrl-C, wherever the main thread is, so that the run is saved without finishing its iteration."""


class Stoppable(Protocol):
    """What `Interrupts` needs of a learner."""

    interruptible: bool
    """Whether SaveNow may be raised now; false once the run is ending."""

    def stop(self, reason: str) -> None: ...


class Interrupts:
    """Turns signals into a stop of the learner, from `watch` to the end of the block. It has no effect outside the main
    thread."""

    def __init__(self, learner: Stoppable | None = None) -> None:
        self.exit_code = 0
        self._learner = learner
        self._presses = 0
        self._finished = False
        self._previous: dict[int, Any] = {}
        self._terminals: list[int] = []

    def __enter__(self) -> Self:
        if self._learner is not None:
            self.watch(self._learner)
        return self

    def watch(self, learner: Stoppable) -> None:
        """Handles signals from now on, by stopping this learner. A learner that comes after another one stops at once if a
        signal came in between."""
        self._learner = learner
        if self.exit_code:
            learner.stop("interrupted")
        if threading.current_thread() is not threading.main_thread():
            return
        self._terminals = [handle for handle in (0, 1, 2) if os.isatty(handle)]
        for number in EXIT_CODES:
            if number != HANG_UP or signal.getsignal(number) != signal.SIG_IGN:  # ignored under nohup
                before = signal.signal(number, self._handle)
                self._previous.setdefault(number, before)

    def release(self) -> None:
        """Forgets the learner, whose memory another one needs. A signal from now on stops the next one that is watched."""
        self._learner = None

    def renew(self) -> None:
        """Handles signals again where a library has put a handler of its own in place, below Python. Compiled runs on a GPU
        ended unsaved at a signal before this; the likely cause is LLVM, by which Triton compiles kernels."""
        for number in self._previous:
            signal.signal(number, self._handle)

    def finish(self) -> None:
        """Is called when everything is saved: signals have no effect any more."""
        self._finished = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        for number, handler in self._previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        return isinstance(error, SaveNow)  # it was raised here, so it ends here; `exit_code` tells the caller

    def _handle(self, number: int, frame: FrameType | None) -> None:
        learner = self._learner
        first = not self.exit_code
        if number == HANG_UP:
            self._redirect_closed_terminals()
        self._presses += number == signal.SIGINT
        if number == signal.SIGINT and self._presses > 2:
            os._exit(self.exit_code or EXIT_CODES[number])
        if self._finished:
            return
        self.exit_code = self.exit_code or EXIT_CODES[number]
        if number != signal.SIGINT or self._presses == 1:
            if first:
                _print("Stopping: this iteration is finished, then the run is saved. Ctrl-C again to save right now.")
            if learner is not None:
                learner.stop("interrupted")
        elif _saving or learner is None or not learner.interruptible:
            _print("Saving already. Ctrl-C again leaves at once; what is being saved is then lost.")
        else:
            learner.interruptible = False  # all that follows is to save, which must not be interrupted again
            _print("Saving right now. Ctrl-C again leaves at once, without saving.")
            raise SaveNow

    def _redirect_closed_terminals(self) -> None:
        """Sends output to the null device, because every write to a closed terminal is an error."""
        for handle in self._terminals:
            if not os.isatty(handle):
                with suppress(OSError):
                    null = os.open(os.devnull, os.O_RDWR)
                    os.dup2(null, handle)
                    os.close(null)


class SignalKeeper(Listener):
    """Renews the handlers after every iteration: kernels may be compiled in any of them."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        self._interrupts.renew()


_saving = 0


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Protects a save: the second Ctrl-C does not interrupt it."""
    global _saving
    _saving += 1
    try:
        yield
    finally:
        _saving -= 1


def _print(message: str) -> None:
    with suppress(OSError):  # print() cannot be re-entered, and the signal may have come in the middle of one
        os.write(2, f"\n{message}\n".encode())
