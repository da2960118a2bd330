"""WorkerProcess: the parent's side of a worker with arenas: start it, talk to it, notice that it died, start it again."""
from __future__ import annotations

import multiprocessing
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from multiprocessing.process import BaseProcess

from wavedash.envs.child import WorkerFailed, how_it_ended, surroundings_of_a_worker
from wavedash.envs.errors import EnvError
from wavedash.rocket.rocketsim.record import SharedArrays
from wavedash.rocket.rocketsim.worker import FAILED, STEP, Job, work

MAX_FAILURES, WITHIN_SECONDS = 3, 60.0
START_SECONDS, SECONDS_PER_ARENA = 120.0, 2.0
"""What a new process may take; an arena takes about 0.05 s"""


class WorkerProcess:
    """One worker. It answers its start and every step."""

    def __init__(self, index: int, job: Job, arrays: SharedArrays, first: int = 0) -> None:
        """`arrays` of all arenas, the first of which is number `first` of the run."""
        self.name = f"RocketSim worker {index} (arenas {first + job.arenas.start} to {first + job.arenas.stop - 1})"
        self.arenas = job.arenas
        self._busy = arrays.part(job.arenas).busy
        self._job = job
        self._failures: deque[float] = deque(maxlen=MAX_FAILURES)
        self._was_ready = False
        self._prepare()

    def _prepare(self) -> None:
        job = replace(self._job, die_with_parent=threading.current_thread() is threading.main_thread())
        context = multiprocessing.get_context("spawn")
        self.pipe, self._child_end = context.Pipe()
        self._process: BaseProcess = context.Process(target=work, args=(job, self._child_end), name=self.name)
        self.awaited = 1
        self._ready = False
        self._asked = time.monotonic()
        self._busy[:] = 0

    def start(self) -> None:
        with self._child_end, surroundings_of_a_worker(needs_main=False):
            self._process.start()

    def restart(self) -> None:
        """A new process, which builds the same arenas."""
        self._prepare()
        self.start()

    def step(self, number: int, ticks: int, delay: int) -> None:
        self.awaited += 1
        self._asked = time.monotonic()
        with suppress(OSError):  # it is dead, which `hear` will find out
            self.pipe.send_bytes(STEP.pack(number, ticks, delay))

    def hear(self) -> None:
        """Takes one answer; raises WorkerFailed if it died, EnvError if it met an exception, which it would meet again."""
        try:
            answer = self.pipe.recv_bytes()
        except (EOFError, OSError):
            raise WorkerFailed(f"{self.name} {how_it_ended(self._process)}", self._busy_arena) from None
        if answer.startswith(FAILED):
            raise EnvError(f"{self.name} failed: {answer[len(FAILED):].decode()}")
        self.awaited -= 1
        self._asked = time.monotonic()
        self._ready = self._was_ready = True

    def look(self, timeout: float) -> None:
        """Raises WorkerFailed when it has been silent for too long."""
        if not self._ready:
            timeout = START_SECONDS + SECONDS_PER_ARENA * (self.arenas.stop - self.arenas.start)
        if self.awaited and time.monotonic() - self._asked > timeout:
            raise WorkerFailed(f"{self.name} hung: no answer for {timeout:.0f} s. It was", self._busy_arena)

    @property
    def _busy_arena(self) -> int | None:
        """The arena of the simulator that it was in."""
        return self.arenas.start + int(self._busy[0]) - 1 if self._ready and self._busy[0] else None

    def gives_up(self) -> bool:
        """Notes a failure; tells whether to stop trying: it never came up, or failed too often in a short time."""
        self._failures.append(time.monotonic())
        often = len(self._failures) == MAX_FAILURES and self._failures[-1] - self._failures[0] < WITHIN_SECONDS
        return often or not self._was_ready

    def stop(self, grace: float = 0.0) -> None:
        """Closing the pipe asks it to end; after `grace` seconds it is killed, which also works on a stopped process."""
        self.pipe.close()
        if self._process.pid is not None:  # it was started
            self._process.join(grace)
            self._process.kill()
            self._process.join()
