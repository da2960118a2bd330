"""Worker: the parent's side of one worker process: start it, talk to it, notice that it died or hangs, start it again."""
from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from contextlib import suppress
from multiprocessing.process import BaseProcess

from wavedash.envs.workers.program import FAILED, READY, Job, work
from wavedash.envs.workers.shared_block import SharedBlock
from wavedash.envs.workers.signs_of_life import SignsOfLife
from wavedash.envs.workers.surroundings import how_it_ended, surroundings_of_a_worker

MAX_FAILURES, WITHIN_SECONDS = 3, 60.0
"""A worker that fails so often within so many seconds is given up."""
STACK_BYTES = 1 << 16
"""Room for the stack dump of a worker."""


class WorkerFailed(Exception):  # noqa: N818 (an event that the parent handles)
    """A worker died, hung or met an exception; the message says which."""

    def __init__(self, message: str, stack: str = "", raised: bool = False) -> None:
        super().__init__(message)
        self.stack = stack
        """The stack of a worker that hung or crashed, if it could be read."""
        self.raised = raised
        """Whether it met an exception, which the message explains. Otherwise only its signs of life say where it was."""

    def told(self, where: str) -> str:
        """The message, with `where` the worker was by its signs of life."""
        if self.raised:
            return str(self)
        return f"{self} {where}" + (f". Its stack:\n{self.stack.rstrip()}" if self.stack else "")


class Worker:
    """A worker process, and its successors with the same job. Commands are answered in order; `awaited` counts the answers
    still to come."""

    def __init__(self, index: int, name: str, job: Job, signs: SignsOfLife, needs_main: bool) -> None:
        """`needs_main`: the job is defined in the script that was started, which the process then has to import."""
        self.index, self.name, self.signs = index, name, signs
        self._job, self._needs_main = job, needs_main
        self._failures: deque[float] = deque(maxlen=MAX_FAILURES)
        self._was_ready = False
        self._prepare()

    def _prepare(self) -> None:
        self.ready = False
        self.awaited = 1  # READY
        self._silence = 0.0
        self.signs.clear()
        self._last_sign = 0
        self._stack = SharedBlock(STACK_BYTES)
        # Linux takes the end of the thread that started a process for the end of its parent.
        die_with_parent = threading.current_thread() is threading.main_thread()
        context = multiprocessing.get_context("spawn")
        self.pipe, self._child_end = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=work, args=(self._job, self._child_end, self._stack, die_with_parent), name=self.name)

    @property
    def pid(self) -> int | None:
        """Process id; None before it is started."""
        return self._process.pid

    def start(self) -> None:
        with self._child_end, surroundings_of_a_worker(self._needs_main):
            self._process.start()

    def restart(self) -> None:
        """Start a new process, which has heard no command yet."""
        self._prepare()
        self.start()

    def tell(self, command: bytes) -> None:
        self.awaited += 1
        self._silence = 0.0
        with suppress(OSError):  # it is dead, which `hear` will find out
            self.pipe.send_bytes(command)

    def hear(self) -> bytes:
        """Take one answer. WorkerFailed: the worker died or met an exception instead."""
        try:
            answer = self.pipe.recv_bytes()
        except (EOFError, OSError):
            raise WorkerFailed(f"{self.name} {how_it_ended(self._process)}", self._written_stack()) from None
        if answer.startswith(FAILED):
            raise WorkerFailed(f"{self.name} failed:\n{answer[len(FAILED):].decode()}", raised=True)
        self.awaited -= 1
        if answer == READY:
            self.ready = self._was_ready = True
        return answer

    def look(self, seconds: float, call_timeout: float, start_timeout: float, advice: str) -> None:
        """Check for signs of life, after so many `seconds`, while an answer is awaited. WorkerFailed: too long without one."""
        sign = self.signs.latest
        self._silence = self._silence + seconds if sign == self._last_sign else 0.0
        self._last_sign = sign
        if self._silence > (call_timeout if self.ready else start_timeout):
            helps = f"{advice} " if self.ready and advice else ""
            what = f"{self.name} hung: no sign of life for {self._silence:.1f} s. {helps}It was"
            raise WorkerFailed(what, self._stack_dump())

    def gives_up(self) -> bool:
        """Note a failure. Returns whether to stop trying: the worker was never ready, or failed too often in a short time."""
        self._failures.append(time.monotonic())
        often = len(self._failures) == MAX_FAILURES and self._failures[-1] - self._failures[0] < WITHIN_SECONDS
        return often or not self._was_ready

    def stop(self, grace: float = 0.0) -> None:
        """Close the pipe, which asks the process to end; after `grace` seconds kill it, which also works if it is stopped."""
        self.pipe.close()
        if self._process.pid is not None:  # it was started
            self._process.join(grace)
            self._process.kill()
            self._process.join()

    def _written_stack(self) -> str:
        return bytes(self._stack.buffer).rstrip(b"\0").decode(errors="replace")

    def _stack_dump(self) -> str:
        if not hasattr(signal, "SIGUSR1"):
            return "(no stack dump on this system)"
        os.kill(self._process.pid or 0, signal.SIGUSR1)
        for _ in range(10):
            time.sleep(0.05)
            if dump := self._written_stack():
                return dump
        return "(it does not answer: the process itself is stopped)"
