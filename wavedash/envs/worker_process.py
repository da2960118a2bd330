"""WorkerProcess: the parent's side of one worker: start it, talk to it, notice that it died or hangs, start it again."""
from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any

from wavedash.envs.arrays import Arrays
from wavedash.envs.child import WorkerFailed, how_it_ended, surroundings_of_a_worker
from wavedash.envs.shared_block import SharedBlock
from wavedash.envs.whereabouts import MAKING, current_moment
from wavedash.envs.worker import DONE_ENDED, FAILED, NOTED, READY, RESET, Job, work

MAX_FAILURES, WITHIN_SECONDS = 3, 60.0
STACK_BYTES = 1 << 16


class WorkerProcess:
    """A worker, and its part of the arrays. It answers commands in order; `awaited` counts the answers still to come."""

    def __init__(self, index: int, job: Job, arrays: Arrays) -> None:
        self._name = f"worker {index} (environments {job.worlds.start} to {job.worlds.stop - 1})"
        self._job = job
        self._needs_main = b"__main__" in bytes(ForkingPickler.dumps(job.make))
        self._failures: deque[float] = deque(maxlen=MAX_FAILURES)
        self._was_ready = False
        self.worlds = job.worlds
        self.arrays = arrays.part(job.worlds)
        self.ended = False
        """An episode of this worker ended in the last step."""
        self.fresh = False
        """Restarted since the last step: all its episodes are new."""
        self.notes: list[Any] = []
        """The answer to NOTES."""
        self._prepare()

    def _prepare(self) -> None:
        self._ready = False
        self.awaited = 1  # READY
        self._silence = 0.0
        self.arrays.heartbeat[:] = 0
        self._last_beat = 0
        self._stack = SharedBlock(STACK_BYTES)
        job = replace(self._job, stack=self._stack, die_with_parent=threading.current_thread() is threading.main_thread())
        context = multiprocessing.get_context("spawn")
        self.pipe, self._child_end = context.Pipe()
        self._process: BaseProcess = context.Process(target=work, args=(job, self._child_end), name=self._name)

    def start(self) -> None:
        with self._child_end, surroundings_of_a_worker(self._needs_main):
            self._process.start()

    def restart(self) -> None:
        """A new process that begins the next episode of every environment."""
        self._prepare()
        self.start()
        self.arrays.episode[:] += 1
        self.fresh = True
        self.tell(RESET)

    def tell(self, command: bytes, payload: Any = None) -> None:
        self.awaited += 1
        self._silence = 0.0
        with suppress(OSError):  # it is dead, which `hear` will find out
            self.pipe.send_bytes(command)
            if payload is not None:
                self.pipe.send(payload)

    def hear(self) -> None:
        """Takes one answer; raises WorkerFailed if that was its last."""
        try:
            answer = self.pipe.recv_bytes()
            if answer == NOTED:
                self.notes = self.pipe.recv()
        except (EOFError, OSError):
            raise self._failed(how_it_ended(self._process), self._written_stack()) from None
        if answer.startswith(FAILED):
            raise WorkerFailed(f"{self._name} failed:\n{answer[len(FAILED):].decode()}")
        self.awaited -= 1
        self.ended = answer == DONE_ENDED
        if answer == READY:
            self._ready = self._was_ready = True

    def look(self, seconds: float, step_timeout: float, start_timeout: float) -> None:
        """Called every so many seconds while an answer is awaited. Raises WorkerFailed when signs of life fail to come."""
        beat = int(self.arrays.heartbeat.max())
        self._silence = self._silence + seconds if beat == self._last_beat else 0.0
        self._last_beat = beat
        if self._silence > (step_timeout if self._ready else start_timeout):
            advice = "Raise env.worker_timeout if that may take so long. " if self._ready else ""
            raise self._failed(f"hung: no sign of life for {self._silence:.1f} s. {advice}It was", self._stack_dump())

    def gives_up(self) -> bool:
        """Notes a failure; tells whether to stop trying: it never came up, or failed too often in a short time."""
        self._failures.append(time.monotonic())
        often = len(self._failures) == MAX_FAILURES and self._failures[-1] - self._failures[0] < WITHIN_SECONDS
        return often or not self._was_ready

    def void_step(self) -> None:
        """This step of a fresh worker's rows is no transition: the episodes they belonged to are lost."""
        arrays = self.arrays
        arrays.reward[:] = 0.0
        arrays.success[:] = 0.0
        arrays.terminated[:] = False
        arrays.truncated[:] = True
        arrays.active[:] = False
        self.copy_final_obs()
        self.fresh, self.ended = False, True

    def copy_final_obs(self) -> None:
        for key, array in self.arrays.obs.items():
            self.arrays.final_obs[key][:] = array

    def stop(self, grace: float = 0.0) -> None:
        """Closing the pipe asks it to end; after `grace` seconds it is killed, which also works on a stopped process."""
        self.pipe.close()
        if self._process.pid is not None:  # it was started
            self._process.join(grace)
            self._process.kill()
            self._process.join()

    def _failed(self, what: str, stack: str) -> WorkerFailed:
        """With where it was, as far as it has noted that."""
        moment = current_moment(self.arrays, self.worlds.start)
        if moment is not None:
            where = f"in {moment}"
        elif self.arrays.doing[0] == MAKING:
            where = f"while it was making environment {self.worlds.start + int(self.arrays.heartbeat.argmax())}"
        elif self._ready:
            where = "between two steps, in no environment"
        else:
            where = ("at its start, before it made an environment. If your script starts training at its top level, put that "
                     "under `if __name__ == '__main__':`, because every worker imports the script; else see what it printed")
        shown = f". Its stack:\n{stack.rstrip()}" if stack else ""
        return WorkerFailed(f"{self._name} {what} {where}{shown}", moment)

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
