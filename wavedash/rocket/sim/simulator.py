"""WarpSimulator: E arenas in Warp kernels, on a CPU or a GPU."""
from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import torch
import warp as wp
from torch import Tensor

from wavedash.envs.errors import EnvError
from wavedash.rocket.saved_records import check_records
from wavedash.rocket.seats import Seat, arena_seats
from wavedash.rocket.sim.collision.arena import load_arena
from wavedash.rocket.sim.collision.shapes import car_shapes
from wavedash.rocket.sim.kernels.memory import Model
from wavedash.rocket.sim.kernels.partition import MAX_TICKS, Memory, Partition
from wavedash.rocket.sim.kernels.struct_io import stride_of
from wavedash.rocket.sim.limits import state_limits
from wavedash.rocket.sim.mechanics.pads import pad_table
from wavedash.rocket.sim.mechanics.scoring import ScoringMemory
from wavedash.rocket.sim.mechanics.suspension import DRIVETRAIN_WORDS
from wavedash.rocket.sim.package import log_if_compiling
from wavedash.rocket.simulator import Simulator
from wavedash.rocket.starts import Kickoff
from wavedash.rocket.state import CONTROLS, GameState
from wavedash.saved import Saved
from wavedash.threads import cores

log = logging.getLogger(__name__)

PARTITION_ARENAS = 32_768
"""Arenas of a partition on a GPU. Each partition has a stream of its own: while few threads solve the collisions of one
partition, the others keep the GPU busy"""
MAX_PARTITIONS = 8


class WarpSimulator(Simulator):
    """`arenas` with `blue` and `orange` seats, all stepped at once. It begins with kick-offs. `state` is the memory that the
    kernels work on.

    `hitboxes`: one name for all cars, or one for each seat. `sizes`: how many seats are taken in each arena, (blue, orange);
    None: all. `threads`: of a CPU; by default as wavedash/threads.py decides. `by_stage`: each stage of a tick is a launch, as
    on a GPU; on a CPU this serves tests, which compare the two.

    - A goal stops its arena for the rest of the step, as with RocketSim.
    - The same states and controls give the same games on the same kind of device, bit for bit, whatever the number of threads.
    - There is no host sync on a GPU, and a step can be captured in a CUDA graph.
    - An arena with numbers that cannot occur in the game, or a body outside the field, begins again with a kick-off.
    """

    def __init__(self, arenas: int, blue: int, orange: int, *, hitboxes: str | Sequence[str] = "octane",
                 device: torch.device | str = "cpu", sizes: Sequence[tuple[int, int]] | None = None,
                 threads: int | None = None, by_stage: bool = False) -> None:
        self.device = torch.empty(0, device=device).device  # with an index: "cuda:0", not "cuda"
        self.capturable = self.device.type == "cuda"
        self._by_stage = by_stage or self.capturable
        seats = blue + orange
        self.state = _kickoffs(arena_seats(arenas, blue, orange, hitboxes, sizes), self.device)
        controls, previous = (self._zeros(seats, len(CONTROLS), dtype=torch.float32) for _ in range(2))
        self._memory = Memory(self.state.memory, self._zeros(seats, DRIVETRAIN_WORDS), self._zeros(stride_of(ScoringMemory)),
                              controls, previous, self._zeros())
        self._host_count = torch.zeros(1, dtype=torch.int64, pin_memory=self.capturable)
        self._bad_arenas, self._warned = self._host_count.numpy(), 0  # the same memory, read without a host sync
        kickoff = _kickoffs(arena_seats(1, blue, orange, hitboxes), self.device)
        self._partitions = self._make_partitions(threads, state_limits(kickoff))
        self._streams: list[torch.cuda.Stream] = []
        if self.capturable:
            self._streams = [torch.cuda.Stream(self.device) for _ in self._partitions[1:]]  # type: ignore[no-untyped-call]
        self._pool = None if self._by_stage else ThreadPoolExecutor(len(self._partitions))
        self._running: list[tuple[Future[None], Callable[[], None]]] = []
        with log_if_compiling(f"{self.device}"):
            for partition in self._partitions:
                partition.launches(ticks=8, delay=1)  # a kernel cannot be loaded during the capture of a CUDA graph

    def _zeros(self, *shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
        """[E, ...] zeros."""
        return torch.zeros(self.state.arenas, *shape, dtype=dtype, device=self.device)

    def _make_partitions(self, threads: int | None, limits: Any) -> list[Partition]:
        """One partition for each thread of a CPU, or a few on a GPU."""
        arenas, warp = self.state.arenas, wp.device_from_torch(self.device)
        model: Any = Model()
        model.arena, model.shapes, model.pads, model.limits = load_arena(warp), car_shapes(warp), pad_table(warp), limits
        count = min(-(-arenas // PARTITION_ARENAS), MAX_PARTITIONS) if self.capturable else threads or cores()
        ends = [arenas * i // min(count, arenas) for i in range(min(count, arenas) + 1)]
        return [Partition(model, self._memory.part(slice(*ends)), self.state.seats, self._by_stage) for ends in pairwise(ends)]

    def send(self, controls: Tensor, ticks: int, delay: int = 0) -> None:
        self._send(controls, ticks, delay, self._pool)

    def step(self, controls: Tensor, ticks: int, delay: int = 0) -> None:
        """A single partition runs in the thread of the caller, who waits anyway: arenas stay in the cache of one core."""
        self._send(controls, ticks, delay, self._pool if len(self._partitions) > 1 else None)
        self.recv()

    def _send(self, controls: Tensor, ticks: int, delay: int, pool: ThreadPoolExecutor | None) -> None:
        if not 0 <= delay <= ticks:
            raise EnvError(f"a delay of {delay} ticks is not within a step of {ticks} ticks")
        if ticks > MAX_TICKS:
            raise EnvError(f"a step has {MAX_TICKS} ticks at most, not {ticks}")
        self._memory.controls.copy_(controls)
        if pool is not None:
            steps = [partial(partition.step, ticks, delay) for partition in self._partitions]
            self._running = [(pool.submit(step), step) for step in steps]
        elif self.capturable:
            self._step_on_streams(ticks, delay)
        else:
            for partition in self._partitions:
                partition.step(ticks, delay)

    def recv(self) -> None:
        """Waits for the threads that `send` started. On a GPU the stream itself runs the step before what reads the state."""
        for launch, step in self._running:
            if launch.cancel():
                step()  # no thread has started it yet because other programs use the cores: this thread does it
            else:
                launch.result()
        self._running = []
        self._memory.previous_controls.copy_(self._memory.controls)

    def _step_on_streams(self, ticks: int, delay: int) -> None:
        """Steps every partition on a stream of its own; only the stream of the caller waits for them."""
        current = torch.cuda.current_stream(self.device)
        streams = [current, *self._streams]
        for stream in self._streams:
            stream.wait_stream(current)
        for partition, stream in zip(self._partitions, streams, strict=True):
            partition.step(ticks, delay, stream)
        for stream in self._streams:
            current.wait_stream(stream)

    def place(self, arenas: Tensor) -> None:
        self._memory.drivetrain.masked_fill_(arenas.view(-1, 1, 1), 0)
        self._memory.scoring.masked_fill_(arenas.unsqueeze(-1), 0)
        before = self._memory.previous_controls
        torch.where(arenas.view(-1, 1, 1), self.state.cars.controls, before, out=before)

    def _hidden_state(self) -> dict[str, Tensor]:
        """Returns what a game depends on beside the records, by the names that checkpoints have."""
        return {"cars": self._memory.drivetrain, "matches": self._memory.scoring, "before": self._memory.previous_controls}

    def save(self) -> dict[str, Tensor]:
        return {**super().save(), **{name: memory.clone() for name, memory in self._hidden_state().items()}}

    def load(self, saved: dict[str, Tensor]) -> None:
        targets = {"records": self.state.memory, **self._hidden_state()}
        for name, memory in targets.items():
            if name not in saved or saved[name].shape != memory.shape:
                raise EnvError("the saved arenas are those of another simulator: set env.rocket.simulator, env.count and the "
                               "cars to what they were, or go on without the saved arenas")
        found = Saved("env", saved, "simulator.")
        check_records(found, "records", self.state)
        for name, memory in self._hidden_state().items():
            words = found.is_like(name, memory)
            if not bool(words.view(torch.float32).isfinite().all()):  # the few integers among them are small: finite as floats
                found.refuse(f"{found.prefix}{name} holds NaN or infinity")
        for name, memory in targets.items():
            memory.copy_(saved[name])

    @property
    def health(self) -> dict[str, int]:
        """`bad_arenas`: how often an arena had to begin again. An increase is logged. There is no host sync: on a GPU the count
        may be that of the previous call."""
        self._host_count.copy_(self._memory.reset_count.sum(0, keepdim=True), non_blocking=True)
        count = int(self._bad_arenas[0])
        if count > self._warned:
            log.warning("%d arena(s) had numbers that cannot be in the game, or a car or ball outside of the field, and began "
                        "again with a kick-off (%d since the start). If this repeats, look at the states that your starts "
                        "write.", count - self._warned, count)
            self._warned = count
        return {"bad_arenas": count}

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


def _kickoffs(seats: Sequence[Sequence[Seat]], device: torch.device) -> GameState:
    """A state with these seats [E][C], in which every arena is at a kick-off."""
    table = torch.tensor(seats, dtype=torch.int32, device=device)  # [E, C, team, hitbox, present]
    state = GameState.empty(table.shape[0], table.shape[1], device)
    state.cars.team.copy_(table[..., 0])
    state.cars.hitbox.copy_(table[..., 1])
    state.cars.present.copy_(table[..., 2])
    kickoff = Kickoff()
    kickoff.bind(state)
    kickoff.write(state, torch.Generator(device).manual_seed(0))
    return state
