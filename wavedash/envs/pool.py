"""WorkerPool: environments in worker processes, stepped in groups while the learner computes the actions of another group.

All arrays lie in one block of shared memory, so a step sends one byte to each worker and copies nothing. A worker that dies,
hangs or meets an exception is started again; the episodes that it was playing are dropped and counted, and training goes on.
"""
from __future__ import annotations

import atexit
import logging
import time
import weakref
from collections.abc import Callable, Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch import Tensor

from wavedash.envs.arrays import Arrays
from wavedash.envs.child import WorkerFailed
from wavedash.envs.errors import EnvError
from wavedash.envs.host import Array
from wavedash.envs.host_vec_env import HostVecEnv, Moment, RowTensors
from wavedash.envs.pipe_selector import PipeSelector
from wavedash.envs.row_spec import RowSpec
from wavedash.envs.shared_block import SharedBlock
from wavedash.envs.vec_env import Obs, Step
from wavedash.envs.whereabouts import how_to_see_it_again
from wavedash.envs.worker import NOTES, REPLAY, RESET, STEP, Job
from wavedash.envs.worker_process import WorkerProcess

logger = logging.getLogger(__name__)

LOOK_EVERY = 0.5
"""Seconds between two looks at the heartbeats."""
CLOSE_SECONDS = 2.0
"""What workers are given to close their environments before they are killed."""


class WorkerPool(HostVecEnv):
    """`count` environments, each made by one call of `make`, in `workers` processes that step in `groups`.

    `worker_timeout` is for one step or reset of one environment; `start_timeout` for importing and building one.
    """

    def __init__(self, make: Callable[[], Any], count: int, workers: int, groups: int = 1, *, worker_timeout: float = 10.0,
                 start_timeout: float = 120.0, device: torch.device | str = "cpu") -> None:
        if not 1 <= groups <= workers <= count:
            raise EnvError(f"{count} environments cannot be divided among {workers} workers in {groups} groups: every group "
                           "needs a worker, every worker an environment")
        _check_picklable(make)
        spec = RowSpec.probe(make)
        block = SharedBlock(Arrays.nbytes(spec, count))
        worlds = _split(count, workers)
        members = _split(workers, groups)
        super().__init__(spec, Arrays.over(block.buffer, spec, count), device,
                         [slice(worlds[group.start].start, worlds[group.stop - 1].stop) for group in members])
        self._make, self._spec, self._members = make, spec, members
        self._timeouts = worker_timeout, start_timeout
        self._looked = time.monotonic()
        self._restarts = 0
        self._pending: dict[int, None] = {}  # groups that were sent, oldest first
        self._selector: PipeSelector[WorkerProcess] = PipeSelector()
        self._workers: list[WorkerProcess] = []
        self._finalizer = weakref.finalize(self, _stop_all, self._workers, self._selector)
        # Not left to weakref: multiprocessing's own exit handler would run first and wait for the workers for ever.
        self._finalizer.atexit = False
        atexit.register(self._finalizer)
        try:
            for index, part in enumerate(worlds):
                job = Job(make, spec, block, count, part)
                worker = WorkerProcess(index, job, self._arrays)
                self._workers.append(worker)  # before it starts: Ctrl-C may come at any time, and then it has to be stopped
                worker.start()
                self._selector.add(worker.pipe, worker)
            self._settle()
        except BaseException:
            self.close()
            raise

    @property
    def health(self) -> dict[str, int]:
        return {**super().health, "worker_restarts": self._restarts}

    def step(self, action: Tensor) -> Step:
        for group, rows in enumerate(self.groups):
            self.send(group, action[rows])
        self._settle()
        self._pending.clear()
        return self._finish(self._workers, self._rows)

    def send(self, group: int, action: Tensor) -> None:
        if group in self._pending:
            raise EnvError(f"group {group} is still stepping: recv() it before the next send()")
        self._group_rows[group].write_action(action)
        self._logs[group].record()
        self._pending[group] = None
        for worker in self._workers[self._members[group]]:
            if not worker.fresh:  # else the answer to its restart is all that this step brings
                worker.tell(STEP)

    def recv(self) -> tuple[int, Step]:
        if not self._pending:
            raise EnvError("recv() without send(): no group is stepping")
        while True:
            for group in self._pending:
                workers = self._workers[self._members[group]]
                if not any(worker.awaited for worker in workers):
                    del self._pending[group]
                    return group, self._finish(workers, self._group_rows[group])
            self._wait()

    def reset(self, seed: int | None = None) -> Obs:
        self._settle()
        self._pending.clear()
        return super().reset(seed)

    def _moment(self) -> Moment:
        if self._pending:
            raise EnvError("save_state() in the middle of a step: recv() every group first")
        return super()._moment()

    def notes(self) -> list[Any]:
        for worker in self._workers:
            worker.notes = []
            worker.tell(NOTES)
        self._settle()
        return [note for worker in self._workers for note in worker.notes]

    def close(self) -> None:
        atexit.unregister(self._finalizer)
        self._finalizer()

    def _begin(self) -> None:
        for worker in self._workers:
            worker.tell(RESET)
        self._settle()

    def _replay(self, actions: list[Array]) -> None:
        for worker in self._workers:
            worker.tell(REPLAY, actions[worker.worlds])
        self._settle()

    def _finish(self, workers: Sequence[WorkerProcess], rows: RowTensors) -> Step:
        for worker in workers:
            if worker.fresh:
                worker.void_step()
        ended = any(worker.ended for worker in workers)
        if ended:
            for worker in workers:
                if not worker.ended:
                    worker.copy_final_obs()
        return rows.step(ended)

    def _settle(self) -> None:
        """Until every worker has answered everything."""
        while any(worker.awaited for worker in self._workers):
            self._wait()

    def _wait(self) -> None:
        """For any news, or for the time of the next look."""
        for worker in self._selector.readable(LOOK_EVERY):
            try:
                worker.hear()
            except WorkerFailed as failure:
                self._recover(worker, failure)
        now = time.monotonic()
        if now - self._looked >= LOOK_EVERY:
            # Time in which this process itself did not run (a suspended laptop, a debugger) is not held against the workers.
            seconds, self._looked = min(now - self._looked, 2 * LOOK_EVERY), now
            for worker in self._workers:
                try:
                    if worker.awaited:
                        worker.look(seconds, *self._timeouts)
                except WorkerFailed as failure:
                    self._recover(worker, failure)

    def _recover(self, worker: WorkerProcess, failure: WorkerFailed) -> None:
        self._selector.remove(worker.pipe)
        worker.stop()
        what = f"{failure}\n{self._again(failure)}" if failure.moment is not None else str(failure)
        if worker.gives_up():
            self.close()
            raise EnvError(f"{what}\nA worker that cannot start, or fails 3 times within a minute, ends the run. With "
                           "env.workers=0 the environments run in this process, where a debugger reaches them")
        logger.warning("%s\nThe worker is started again; its unfinished episodes are dropped", what)
        self._restarts += 1
        self._dropped += len(worker.arrays.episode)
        worker.restart()
        self._selector.add(worker.pipe, worker)

    def _again(self, failure: WorkerFailed) -> str:
        world = failure.moment.world
        group = next(index for index, worlds in enumerate(self._worlds) if worlds.start <= world < worlds.stop)
        actions = self._logs[group].of(world - self._worlds[group].start)
        return how_to_see_it_again(failure.moment, self._make, actions + self._spec.action_start)


def _split(total: int, parts: int) -> list[slice]:
    return [slice(total * i // parts, total * (i + 1) // parts) for i in range(parts)]


def _check_picklable(make: Callable[[], Any]) -> None:
    try:
        ForkingPickler.dumps(make)
    except Exception as error:
        raise EnvError(f"the environment factory {make!r} cannot be sent to a worker process ({error}). Define it at the top "
                       "level of a module instead of as a lambda or inside a function, or name it by its import path: "
                       "EnvFactory('package.module:callable', imported=True)") from error


def _stop_all(workers: Sequence[WorkerProcess], selector: PipeSelector[WorkerProcess]) -> None:
    selector.close()
    for worker in workers:
        worker.pipe.close()
    deadline = time.monotonic() + CLOSE_SECONDS
    for worker in workers:
        worker.stop(grace=max(0.0, deadline - time.monotonic()))
