"""WorkerPool: environments in worker processes. A shard of them steps while the learner computes the actions of another.

All arrays lie in one block of shared memory, so a step sends one byte to each worker and copies nothing. A worker that dies,
hangs or meets an exception is started again; the episodes that it was playing are dropped and counted, and training goes on.
"""
from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch import Tensor

from wavedash.envs.arrays import Arrays
from wavedash.envs.errors import EnvError
from wavedash.envs.host import Array
from wavedash.envs.host_vec_env import HostVecEnv, Instant, RowTensors
from wavedash.envs.moment import current_moment, how_to_see_it_again
from wavedash.envs.pool_program import DONE_ENDED, NOTED, NOTES, REPLAY, RESET, STEP, EnvJob
from wavedash.envs.row_spec import RowSpec
from wavedash.envs.vec_env import Obs, Step
from wavedash.envs.workers.process import Worker, WorkerFailed
from wavedash.envs.workers.shared_block import SharedBlock
from wavedash.envs.workers.signs_of_life import MAKING
from wavedash.envs.workers.supervisor import Post, Supervisor, Timeouts, shares


class WorkerPool(HostVecEnv):
    """`count` environments, each made by one call of `make`, in `workers` processes that step as `groups` shards.

    `worker_timeout` limits one step or reset of one environment, `start_timeout` importing and building one.
    """

    def __init__(self, make: Callable[[], Any], count: int, workers: int, groups: int = 1, *, worker_timeout: float = 10.0,
                 start_timeout: float = 120.0, device: torch.device | str = "cpu") -> None:
        if not 1 <= groups <= workers <= count:
            raise EnvError(f"{count} environments cannot be divided among {workers} workers in {groups} groups: every group "
                           "needs a worker, every worker an environment")
        needs_main = b"__main__" in _pickled(make)
        spec = RowSpec.probe(make)
        block = SharedBlock(Arrays.nbytes(spec, count))
        split, members = shares(count, workers), shares(workers, groups)
        super().__init__(spec, Arrays.over(block.buffer, spec, count), device,
                         [slice(split[group.start].start, split[group.stop - 1].stop) for group in members])
        self._make, self._spec, self._members = make, spec, members
        self._pending: dict[int, None] = {}  # shards that were sent, the oldest first
        self._shares = [Share(share, self._arrays.part(share)) for share in split]
        posts = [Post(f"worker {index} (environments {envs.start} to {envs.stop - 1})", EnvJob(make, spec, block, count, envs),
                      self._arrays.part(envs).signs) for index, envs in enumerate(split)]
        advice = "Raise env.worker_timeout if that may take so long."
        self._supervisor = Supervisor(posts, Timeouts(worker_timeout, start_timeout, advice), needs_main)
        try:
            self._settle()
        except BaseException:
            self.close()
            raise

    @property
    def health(self) -> dict[str, int]:
        return {**super().health, "worker_restarts": self._supervisor.restarts}

    def step(self, action: Tensor) -> Step:
        for group, rows in enumerate(self.groups):
            self.send(group, action[rows])
        self._settle()
        self._pending.clear()
        return self._finish(self._shares, self._rows)

    def send(self, group: int, action: Tensor) -> None:
        if group in self._pending:
            raise EnvError(f"group {group} is still stepping: recv() it before the next send()")
        self._group_rows[group].write_action(action)
        self._logs[group].record()
        self._pending[group] = None
        members = self._members[group]
        for worker, share in zip(self._supervisor.workers[members], self._shares[members], strict=True):
            if not share.fresh:  # else the answer to its restart counts as this step
                worker.tell(STEP)

    def recv(self) -> tuple[int, Step]:
        if not self._pending:
            raise EnvError("recv() without send(): no group is stepping")
        while True:
            for group in self._pending:
                members = self._members[group]
                if not any(worker.awaited for worker in self._supervisor.workers[members]):
                    del self._pending[group]
                    return group, self._finish(self._shares[members], self._group_rows[group])
            self._wait()

    def reset(self, seed: int | None = None) -> Obs:
        self._settle()
        self._pending.clear()
        return super().reset(seed)

    def _moment(self) -> Instant:
        if self._pending:
            raise EnvError("save_state() in the middle of a step: recv() every group first")
        return super()._moment()

    def notes(self) -> list[Any]:
        for share in self._shares:
            share.notes = []
        self._tell_all(NOTES)
        return [note for share in self._shares for note in share.notes]

    def close(self) -> None:
        self._supervisor.close()

    def _begin(self) -> None:
        self._tell_all(RESET)

    def _replay(self, actions: list[Array]) -> None:
        for worker, share in zip(self._supervisor.workers, self._shares, strict=True):
            worker.tell(REPLAY + pickle.dumps(actions[share.envs]))
        self._settle()

    def _tell_all(self, command: bytes) -> None:
        for worker in self._supervisor.workers:
            worker.tell(command)
        self._settle()

    def _finish(self, shares_: Sequence[Share], rows: RowTensors) -> Step:
        for share in shares_:
            if share.fresh:
                share.void_step()
        ended = any(share.ended for share in shares_)
        if ended:
            for share in shares_:
                if not share.ended:
                    share.copy_final_obs()
        return rows.step(ended)

    def _settle(self) -> None:
        """Wait until every worker has answered everything."""
        while self._supervisor.awaited:
            self._wait()

    def _wait(self) -> None:
        """Wait for news, at most for a while."""
        for worker, news in self._supervisor.news():
            share = self._shares[worker.index]
            if isinstance(news, WorkerFailed):
                self._recover(worker, share, news)
            elif news.startswith(NOTED):
                share.notes = pickle.loads(news[len(NOTED) :])
            else:
                share.ended = news == DONE_ENDED

    def _recover(self, worker: Worker, share: Share, failure: WorkerFailed) -> None:
        """Replace a failed worker; the new process begins the next episode of every environment."""
        self._supervisor.replace(
            worker, failure.told(self._where(worker, share)) + self._again(share, failure),
            lost="its unfinished episodes are dropped",
            advice=". With env.workers=0 the environments run in this process, where a debugger reaches them")
        self._dropped += len(share.arrays.episode)
        share.arrays.episode[:] += 1
        share.fresh = True
        worker.tell(RESET)

    def _where(self, worker: Worker, share: Share) -> str:
        """Find out where a worker was, by its signs of life."""
        first, signs = share.envs.start, worker.signs
        if (moment := current_moment(share.arrays, first)) is not None:
            return f"in {moment}"
        if signs.doing[0] == MAKING:
            return f"while it was making environment {first + signs.thing}"
        if worker.ready:
            return "between two steps, in no environment"
        return ("at its start, before it made an environment. If your script starts training at its top level, put that under "
                "`if __name__ == '__main__':`, because every worker imports the script; else see what it printed")

    def _again(self, share: Share, failure: WorkerFailed) -> str:
        """Lines of Python that play the episode up to the call that the worker did not survive."""
        moment = None if failure.raised else current_moment(share.arrays, share.envs.start)
        if moment is None:
            return ""
        group = next(index for index, envs in enumerate(self._envs) if envs.start <= moment.env < envs.stop)
        actions = self._logs[group].of(moment.env - self._envs[group].start)
        return "\n" + how_to_see_it_again(moment, self._make, actions + self._spec.action_start)


class Share:
    """The environments of one worker, and what the parent knows about them."""

    def __init__(self, envs: slice, arrays: Arrays) -> None:
        self.envs, self.arrays = envs, arrays
        self.ended = False
        """An episode ended in the last step."""
        self.fresh = False
        """The worker was restarted since the last step: all episodes are new."""
        self.notes: list[Any] = []
        """The answer to NOTES."""

    def void_step(self) -> None:
        """Mark the step of a restarted worker's rows as no transition: the episodes they belonged to are lost."""
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


def _pickled(make: Callable[[], Any]) -> bytes:
    try:
        return bytes(ForkingPickler.dumps(make))
    except Exception as error:
        raise EnvError(f"the environment factory {make!r} cannot be sent to a worker process ({error}). Define it at the top "
                       "level of a module instead of as a lambda or inside a function, or name it by its import path: "
                       "EnvFactory('package.module:callable', imported=True)") from error
