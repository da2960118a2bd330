"""RocketSimSimulator: E arenas of RocketSim with one batched state, in this process or in worker processes.

State and controls lie in one block of memory that all workers map. Workers write where tasks read, a step sends a few bytes to
each worker, and on a CPU nothing is copied. As the memory holds everything, a worker that dies loses nothing: a new one loads
the last state of its arenas and does the step again.
"""
from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from wavedash.envs.errors import EnvError
from wavedash.envs.workers.process import Worker, WorkerFailed
from wavedash.envs.workers.shared_block import SharedBlock
from wavedash.envs.workers.signs_of_life import MAKING, WAITING
from wavedash.envs.workers.supervisor import LOOK_EVERY, Post, Supervisor, Timeouts, shares
from wavedash.rocket.rocketsim.again import how_to_play_it_again
from wavedash.rocket.rocketsim.batch import ArenaBatch
from wavedash.rocket.rocketsim.episode_log import EpisodeLog
from wavedash.rocket.rocketsim.layout import record_layout
from wavedash.rocket.rocketsim.package import rocketsim
from wavedash.rocket.rocketsim.program import STEP, ArenaJob
from wavedash.rocket.rocketsim.record import SharedArrays
from wavedash.rocket.saved_records import check_records
from wavedash.rocket.seats import arena_seats
from wavedash.rocket.simulator import Simulator
from wavedash.rocket.state import GameState
from wavedash.saved import Saved

logger = logging.getLogger(__name__)

START_SECONDS = 120.0
"""Seconds that a new process may take to start, or to make one arena, which takes about 0.05 s"""
LONGEST_STEP = 1200
"""Greatest number of ticks of a saved step: ten seconds, more than any task has"""


class RocketSimSimulator(Simulator):
    """`arenas` with `blue` and `orange` seats, in `workers` processes (0: in this one). It begins with kick-offs.

    `hitboxes`: one name for all cars, or one for each seat. `sizes`: how many seats are taken in each arena, (blue, orange);
    None: all. `timeout`: seconds without a sign of life after which a worker counts as dead. `first`: the number of its first
    arena in the run, for messages.

    - A goal stops its arena for the rest of the step: the state stays that of the goal until the arena is placed or stepped.
    - The same states and controls give the same games, bit for bit, whatever was before and however many workers there are.
      (That is so on Linux. Elsewhere, with three cars or more, one game in a hundred can differ where one car drives over
      another: see car_order.py.)
    - A state that is placed lacks what RocketSim does not expose: forces of the wheels, contacts of the last tick and the order
      in which these are solved. In the air nothing is missing; on the wheels the velocity 8 ticks later is about 4 and seldom
      more than 20 uu/s off from that of the game from which the state was taken.
    - A demolished car comes back on one of RocketSim's four spots; the clock chooses which.
    """

    def __init__(self, arenas: int, blue: int, orange: int, *, hitboxes: str | Sequence[str] = "octane", workers: int = 0,
                 device: torch.device | str = "cpu", sizes: Sequence[tuple[int, int]] | None = None,
                 timeout: float = 60.0, first: int = 0) -> None:
        if not 0 <= workers <= arenas:
            raise EnvError(f"{arenas} arenas cannot be divided among {workers} workers: every worker needs an arena")
        rocketsim()  # a missing package is better reported here than by a worker
        self._seats, self._first = arena_seats(arenas, blue, orange, hitboxes, sizes), first
        layout = record_layout(blue + orange)
        block = SharedBlock(SharedArrays.nbytes(layout, arenas))
        self._arrays = arrays = SharedArrays.over(block.buffer, layout, arenas)
        self.device = torch.device(device)
        self._step = (0, 0, 0)
        self._stepping = False
        self._anew = np.ones(arenas, np.bool_)  # [E]: arenas that are new, have a new worker or rested before the next step
        self._shares = shares(arenas, workers) if workers else []
        self._supervisor = Supervisor(
            [Post(f"RocketSim worker {index} (arenas {first + share.start} to {first + share.stop - 1})",
                  ArenaJob(layout, block, self._seats, share), arrays.part(share).signs)
             for index, share in enumerate(self._shares)], Timeouts(timeout, START_SECONDS))
        try:
            self._batch = None if workers else ArenaBatch(layout, self._seats, arrays)
            self._wait_for_workers()
            host = GameState.over(torch.from_numpy(arrays.records.view(np.int32)), blue + orange)
            self._mirror = None if self.device.type == "cpu" else _DeviceMirror(host, arrays, block, self.device)
        except BaseException:
            self.close()
            raise
        self.state = self._mirror.state if self._mirror else host
        self._log = EpisodeLog(arrays)

    @property
    def health(self) -> dict[str, int]:
        return {"worker_restarts": self._supervisor.restarts}

    def send(self, controls: Tensor, ticks: int, delay: int = 0) -> None:
        if self._supervisor.closed:
            raise EnvError("the simulator was closed")
        if self._stepping:
            raise EnvError("the arenas are still stepping: recv() before the next send()")
        if not 0 <= delay <= ticks:
            raise EnvError(f"a delay of {delay} ticks is not within a step of {ticks} ticks")
        self._stepping = True
        if self._mirror:
            self._mirror.to_host(controls)
        else:
            np.minimum(controls.detach().numpy(), 1.0, out=self._arrays.controls)
            np.maximum(self._arrays.controls, -1.0, out=self._arrays.controls)
        self._arrays.placed[:] |= self._arrays.resting | self._anew
        self._anew.fill(False)
        self._log.record(self._arrays, ticks, delay)
        self._step = (self._step[0] + 1, ticks, delay)
        for worker in self._supervisor.workers:
            worker.tell(STEP.pack(*self._step))

    def recv(self) -> None:
        if not self._stepping:
            raise EnvError("recv() without send(): the arenas are not stepping")
        if self._batch:
            self._batch.step(*self._step)
        self._wait_for_workers()
        self._stepping = False
        if self._mirror:
            self._mirror.from_host()

    @property
    def ready(self) -> bool:
        self._handle_news(0.0)
        return not self._supervisor.awaited

    def place(self, arenas: Tensor) -> None:
        if self._stepping:
            raise EnvError("the arenas are still stepping: recv() before place()")
        if self._mirror:
            self._mirror.place(arenas)
        else:
            np.logical_or(self._arrays.placed, arenas.numpy(), out=self._arrays.placed)

    def rest(self, arenas: Tensor) -> None:
        """An arena that ticks again goes on as one that was placed."""
        if self._stepping:
            raise EnvError("the arenas are still stepping: recv() before rest()")
        resting = arenas.cpu().numpy()
        self._anew |= self._arrays.resting & ~resting
        self._arrays.resting[:] = resting

    def save(self) -> dict[str, Tensor]:
        return self.keep()()

    def keep(self) -> Callable[[], dict[str, Tensor]]:
        """The controls of long games are copied only when they are needed."""
        records, log, begins = super().save(), self._log.keep(), self._begins()
        return lambda: {**records, **log(), "begins": begins}

    def load(self, saved: dict[str, Tensor]) -> None:
        """Plays the saved games again. One that begins with the next step has nothing to play: its saved state is its
        beginning. A game that comes out differently goes on from its saved state."""
        if "age" not in saved:
            raise EnvError("the saved arenas are those of another simulator: set env.rocket.simulator to what it was, or go on "
                           "without the saved arenas")
        self._check_saved(Saved("env", saved, "simulator."))
        memory, on = self.state.memory, self.device
        ages, controls, beginnings = saved["age"], saved["controls"].to(on), saved["beginnings"].to(on)
        for number, (ticks, delay) in enumerate(saved["timing"].tolist()):
            begins = (ages == len(controls) - number).to(on)
            torch.where(begins.unsqueeze(-1), beginnings, memory, out=memory)
            self.place(begins)
            self.step(controls[number], ticks, delay)
        begins = saved.get("begins", torch.zeros_like(ages, dtype=torch.bool)).to(on)  # older checkpoints lack it
        differ = (memory != saved["records"].to(on)).any(-1) & ~begins
        memory.copy_(saved["records"])
        self.place(begins | differ)
        if bool(differ.any()):
            logger.warning("%d of %d games differ when they are played again, and go on from their saved states",
                           int(differ.sum()), len(differ))

    def _begins(self) -> Tensor:
        """[E]: arenas whose next step begins a game, because RocketSim has no past of their states: those that were placed,
        that rest or have rested, that are new or have a new worker."""
        arrays = self._arrays
        placed = self._mirror.placed.cpu() if self._mirror else torch.from_numpy(arrays.placed)
        return placed | torch.from_numpy(arrays.resting | self._anew)

    def _check_saved(self, saved: Saved) -> None:
        for name in ("records", "beginnings"):
            check_records(saved, name, self.state)
        steps = len(saved.has("timing", torch.int64, (None, 2)))
        saved.is_between("timing", 0, LONGEST_STEP)
        if bool((saved.tensors["timing"][:, 1] > saved.tensors["timing"][:, 0]).any()):
            saved.refuse(f"{saved.prefix}timing holds a delay that is longer than its step")
        controls = saved.has("controls", torch.float32, (None, self.state.arenas, self.state.seats, 8) if steps else (0,))
        if len(controls) != steps:
            saved.refuse(f"{saved.prefix}controls holds {len(controls):,} steps, but timing {steps:,}")
        if "begins" in saved.tensors:
            saved.has("begins", torch.bool, (self.state.arenas,))
        saved.has("age", torch.int64, (self.state.arenas,))
        saved.is_between("age", 0, steps)

    def close(self) -> None:
        self._supervisor.close()
        self._batch = None

    def _wait_for_workers(self) -> None:
        """Waits until every worker has answered everything."""
        while self._supervisor.awaited:
            self._handle_news(LOOK_EVERY)

    def _handle_news(self, seconds: float) -> None:
        """Handles the answers and failures of workers that arrive within so many seconds."""
        for worker, news in self._supervisor.news(seconds):
            if isinstance(news, WorkerFailed):
                self._recover(worker, news)

    def _recover(self, worker: Worker, failure: WorkerFailed) -> None:
        """Starts a new process, which goes on from the records. After an exception it would only fail again, so that is
        raised."""
        if failure.raised:
            self.close()
            raise EnvError(str(failure))
        self._supervisor.replace(worker, failure.told(self._where(worker)) + self._again(worker),
                                 lost="its arenas go on from their last state")
        self._begin_games_of(worker)
        if self._stepping:
            worker.tell(STEP.pack(*self._step))

    def _begin_games_of(self, worker: Worker) -> None:
        """Lets games begin in the arenas of a new worker: with the step under way, or with the next if that is complete."""
        share = self._shares[worker.index]
        if self._stepping and self._arrays.done[share.start] != self._step[0]:
            self._log.begin(share, self._arrays)
        else:
            self._anew[share] = True

    def _arena_of(self, worker: Worker) -> int | None:
        """The arena in which the worker was, if any."""
        playing = worker.ready and worker.signs.doing[0] not in (WAITING, MAKING)
        return self._shares[worker.index].start + worker.signs.thing if playing else None

    def _where(self, worker: Worker) -> str:
        arena = self._arena_of(worker)
        if arena is None:
            return "in no arena: while it was starting, or between two steps"
        state = GameState.over(torch.from_numpy(self._arrays.records.view(np.int32)), len(self._seats[0]))
        return (f"in arena {self._first + arena}, step {self._log.age_of(arena)} since its episode began (after tick "
                f"{int(state.game.tick[arena])})")

    def _again(self, worker: Worker) -> str:
        """How to play the game again in which a worker died."""
        arena = self._arena_of(worker)
        return "" if arena is None else "\n" + how_to_play_it_again(self._log, arena, self._seats[arena])


class _DeviceMirror:
    """The state on a GPU: one copy each way per step, between it and page-locked memory of the host."""

    def __init__(self, host: GameState, arrays: SharedArrays, block: SharedBlock, device: torch.device) -> None:
        self._lock = _PageLock(torch.frombuffer(block.buffer, dtype=torch.uint8))
        self._host = host
        self._host_controls, self._host_placed = torch.from_numpy(arrays.controls), torch.from_numpy(arrays.placed)
        self.state = host.to(device)
        self.placed = torch.zeros(host.arenas, dtype=torch.bool, device=device)
        """Arenas that were placed since the last step"""
        self._placing = False
        self._arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]

    def place(self, arenas: Tensor) -> None:
        self.placed.logical_or_(arenas)
        self._placing = True

    def to_host(self, controls: Tensor) -> None:
        """Waits until the controls are there, and so also for the copy of the previous step, which is ahead of it in the
        stream."""
        self._host_controls.copy_(controls.clamp(-1.0, 1.0), non_blocking=True)
        if self._placing:
            self._host.memory.copy_(self.state.memory, non_blocking=True)
            self._host_placed.copy_(self.placed, non_blocking=True)
            self.placed.zero_()
            self._placing = False
        self._arrived.record()
        self._arrived.synchronize()

    def from_host(self) -> None:
        self.state.memory.copy_(self._host.memory, non_blocking=True)


class _PageLock:
    """Page-locks memory that others allocated, so that the GPU can copy it without the host."""

    def __init__(self, memory: Tensor) -> None:
        self._memory, self._runtime = memory, torch.cuda.cudart()  # type: ignore[no-untyped-call]
        torch.cuda.check_error(self._runtime.cudaHostRegister(memory.data_ptr(), memory.nbytes, 0))

    def __del__(self) -> None:
        self._runtime.cudaHostUnregister(self._memory.data_ptr())
