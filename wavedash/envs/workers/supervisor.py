"""Supervisor: starts all worker processes of a VecEnv, reports their answers and failures, replaces and ends them."""
from __future__ import annotations

import atexit
import logging
import time
import weakref
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wavedash.envs.errors import EnvError
from wavedash.envs.workers.pipe_selector import PipeSelector
from wavedash.envs.workers.process import Worker, WorkerFailed
from wavedash.envs.workers.program import READY, Job
from wavedash.envs.workers.signs_of_life import SignsOfLife

logger = logging.getLogger(__name__)

LOOK_EVERY = 0.5
"""Seconds between two checks of the signs of life."""
CLOSE_SECONDS = 2.0
"""Seconds that workers have to close what they work on before they are killed."""


class Post(NamedTuple):
    """What one worker is to do."""

    name: str
    """The worker's name in messages."""
    job: Job
    signs: SignsOfLife
    """They lie in memory that it shares with the parent."""


class Timeouts(NamedTuple):
    """Seconds without a sign of life after which a worker counts as hung."""

    call: float
    start: float
    """The same before it is ready, while it imports and builds."""
    advice: str = ""
    """What to do if a call may take so long, for the message."""


class Supervisor:
    """Starts a worker for each post at once; `close` (or the end of this object, or of the program) ends them.

    A worker that dies, hangs or meets an exception is reported by `news`; `replace` starts it again.
    """

    def __init__(self, posts: Sequence[Post], timeouts: Timeouts, needs_main: bool = False) -> None:
        self.workers: list[Worker] = []
        self.restarts = 0
        self._timeouts = timeouts
        self._looked = time.monotonic()
        self._selector: PipeSelector[Worker] = PipeSelector()
        self._finalizer = weakref.finalize(self, _stop_all, self.workers, self._selector)
        # Not left to weakref: multiprocessing's own exit handler would run first and wait for the workers for ever.
        self._finalizer.atexit = False
        atexit.register(self._finalizer)
        try:
            for index, post in enumerate(posts):
                worker = Worker(index, *post, needs_main)
                self.workers.append(worker)  # before it starts: Ctrl-C may come at any time, and then it has to be stopped
                worker.start()
                self._selector.add(worker.pipe, worker)
        except BaseException:
            self.close()
            raise

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    @property
    def awaited(self) -> bool:
        """Whether any worker still owes an answer."""
        return any(worker.awaited for worker in self.workers)

    def news(self, seconds: float = LOOK_EVERY) -> Iterator[tuple[Worker, bytes | WorkerFailed]]:
        """Answers and failures, as soon as there are any; none after so many seconds without. A failed worker has been stopped:
        call `replace` before anything else."""
        for worker in self._selector.readable(seconds):
            try:
                answer = worker.hear()
            except WorkerFailed as failure:
                yield worker, self._stopped(worker, failure)
            else:
                if answer != READY:
                    yield worker, answer
        now = time.monotonic()
        if now - self._looked >= LOOK_EVERY:
            # Time in which this process itself did not run (a suspended laptop, a debugger) does not count.
            passed, self._looked = min(now - self._looked, 2 * LOOK_EVERY), now
            for worker in self.workers:
                try:
                    if worker.awaited:
                        worker.look(passed, *self._timeouts)
                except WorkerFailed as failure:
                    yield worker, self._stopped(worker, failure)

    def replace(self, worker: Worker, what: str, lost: str, advice: str = "") -> None:
        """Start a failed worker again. EnvError: it failed too often, and all workers have been ended. `what` happened and what
        is `lost` by it are for the warning, `advice` is for the error."""
        if worker.gives_up():
            self.close()
            raise EnvError(f"{what}\nA worker that cannot start, or fails 3 times within a minute, ends the run{advice}")
        logger.warning("%s\nThe worker is started again; %s", what, lost)
        self.restarts += 1
        worker.restart()
        self._selector.add(worker.pipe, worker)

    def close(self) -> None:
        """Safe to call twice."""
        atexit.unregister(self._finalizer)
        self._finalizer()

    def _stopped(self, worker: Worker, failure: WorkerFailed) -> WorkerFailed:
        self._selector.remove(worker.pipe)
        worker.stop()
        return failure


def shares(total: int, parts: int) -> list[slice]:
    """`total` things divided into `parts` as evenly as possible, in order."""
    return [slice(total * i // parts, total * (i + 1) // parts) for i in range(parts)]


def _stop_all(workers: Sequence[Worker], selector: PipeSelector[Worker]) -> None:
    selector.close()
    for worker in workers:
        worker.pipe.close()
    deadline = time.monotonic() + CLOSE_SECONDS
    for worker in workers:
        worker.stop(grace=max(0.0, deadline - time.monotonic()))
