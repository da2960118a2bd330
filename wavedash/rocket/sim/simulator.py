"""WarpSimulator: E arenas in Warp kernels, on a CPU or a GPU."""
from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import torch
import warp as wp
from torch import Tensor

from wavedash.envs.errors import EnvError
from wavedash.rocket.seats import Seat, seated
from wavedash.rocket.sim import launches
from wavedash.rocket.sim.arena import load_arena
from wavedash.rocket.sim.bodies import Body
from wavedash.rocket.sim.car_arena import ROOM_FOR_REACHED
from wavedash.rocket.sim.contacts import Contact, Touch, most_contacts
from wavedash.rocket.sim.launches import SPREAD, kernels
from wavedash.rocket.sim.package import announced
from wavedash.rocket.sim.pads import pad_table
from wavedash.rocket.sim.records import room_of
from wavedash.rocket.sim.safety import safety_of
from wavedash.rocket.sim.scoring import Match
from wavedash.rocket.sim.shapes import car_shapes
from wavedash.rocket.sim.solver import Row
from wavedash.rocket.sim.suspension import AXLES_WORDS
from wavedash.rocket.sim.walls import Reach
from wavedash.rocket.sim.world import LISTS, Arenas, World
from wavedash.rocket.simulator import Simulator
from wavedash.rocket.starts import Kickoff
from wavedash.rocket.state import GameState

log = logging.getLogger(__name__)

MOST_TICKS = 128
"""Of a step"""
BLOCK = 128
"""Threads of a GPU that share a multiprocessor's registers"""
MOST_THREADS = 1 << 17
"""That share a list"""
LANES = 8
"""Of a GPU's threads, that share the triangles around a car or ball"""


class WarpSimulator(Simulator):
    """`arenas` with `blue` and `orange` seats, all stepped by one launch. It begins with kick-offs. `state` is the memory that
    the kernel works on.

    `hitboxes`: of all cars, or one for each seat. `sizes`: how many of the seats are taken in each arena, (blue, orange); None:
    all. `threads`: of a CPU, all by default. `in_parts`: each part of a tick is a launch, as it always is on a GPU; on a CPU,
    to see that it comes to the same.

    - A goal stops its arena for the rest of the step, as with RocketSim.
    - The same states and controls give the same games on the same kind of device, bit for bit, whatever the number of threads.
    - Nothing waits for a GPU, and a step can be recorded in a CUDA graph.
    - An arena with numbers that cannot be in the game, or a body outside of the field, begins again with a kick-off.
    """

    def __init__(self, arenas: int, blue: int, orange: int, *, hitboxes: str | Sequence[str] = "octane",
                 device: torch.device | str = "cpu", sizes: Sequence[tuple[int, int]] | None = None,
                 threads: int | None = None, in_parts: bool = False) -> None:
        self.device = torch.empty(0, device=device).device  # with its number
        self.capturable = self.device.type == "cuda"
        self._in_parts = in_parts or self.capturable
        seats = blue + orange
        self.state = _kickoffs(seated(arenas, blue, orange, hitboxes, sizes), self.device)
        warp = wp.device_from_torch(self.device)
        self._warp = warp
        self._axles, self._matches = self._room(seats, AXLES_WORDS), self._room(room_of(Match))
        self._controls, self._before = (self._room(seats, 8, dtype=torch.float32) for _ in range(2))
        self._world, self._arenas = World(), self._allocated(arenas, seats)
        self._bad = self._room()
        self._arenas.safety = safety_of(_kickoffs(seated(1, blue, orange, hitboxes), self.device), self._bad)
        self._told = torch.zeros(1, dtype=torch.int64, pin_memory=self.device.type == "cuda")
        self._bad_arenas, self._warned = self._told.numpy(), 0  # the same memory, where a look waits for nobody
        self._world.arena, self._world.shapes, self._world.pads = load_arena(warp), car_shapes(warp), pad_table(warp)
        self._threads = 1 if self.device.type == "cuda" else min(threads or os.cpu_count() or 1, arenas)
        self._pool = None if self._in_parts else ThreadPoolExecutor(self._threads)
        self._running: list[Future[None]] = []
        self._steps: dict[tuple[int, int], list[Any]] = {}
        self._kernels = kernels(seats)
        self._lanes = LANES if self.capturable else 1
        with announced(f"{self.device}"):
            self._commands(ticks=8, delay=1)  # a kernel cannot be loaded while a graph is being recorded

    def _room(self, *shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
        """[E, ...] zeros."""
        return torch.zeros(self.state.arenas, *shape, dtype=dtype, device=self.device)

    def _allocated(self, arenas: int, seats: int) -> Any:
        """Records, what is remembered, and room for a tick's work."""
        words = self.state.memory
        room: Any = Arenas()  # whose fields take Python's numbers
        room.words, room.numbers, room.seats = wp.from_torch(words), wp.from_torch(words.view(torch.float32)), seats
        room.axles, room.matches = wp.from_torch(self._axles.flatten(1)), wp.from_torch(self._matches)
        room.controls, room.before = wp.from_torch(self._controls), wp.from_torch(self._before)
        room.done = wp.from_torch(self._room())
        room.held, room.touching = wp.from_torch(self._room(seats)), wp.from_torch(self._room(1 + seats))
        room.reach = wp.from_torch(self._room(seats * room_of(Reach)))
        room.meeting = wp.zeros(arenas, dtype=wp.int32, device=self._warp)
        room.lists, room.many = (wp.zeros((LISTS, size), dtype=wp.int32, device=self._warp)
                                 for size in (arenas * seats, MOST_TICKS))
        threads = max(arenas, MOST_THREADS if self._in_parts else 0)
        room.reaches, room.touches = (wp.empty(threads, dtype=kind, device=self._warp) for kind in (Reach, Touch))
        room.reached = wp.empty((threads, ROOM_FOR_REACHED), dtype=wp.int32, device=self._warp)
        room.bodies = wp.from_torch(self._room((1 + seats) * room_of(Body)))
        room.contacts = wp.empty((arenas, most_contacts(seats)), dtype=Contact, device=self._warp)
        room.rows = wp.empty((arenas, most_contacts(seats)), dtype=Row, device=self._warp)
        return room

    def send(self, controls: Tensor, ticks: int, delay: int = 0) -> None:
        if not 0 <= delay <= ticks:
            raise EnvError(f"a delay of {delay} ticks is not within a step of {ticks} ticks")
        if ticks > MOST_TICKS:
            raise EnvError(f"a step has {MOST_TICKS} ticks at most, not {ticks}")
        self._controls.copy_(controls)
        commands = self._commands(ticks, delay)
        if self._pool is None:
            stream = torch.cuda.current_stream(self.device) if self.capturable else None
            for command in commands:
                command.launch(stream)  # of a stream a launch takes nothing but its handle
        else:
            self._running = [self._pool.submit(command.launch) for command in commands]

    def recv(self) -> None:
        """Where `send` has not done it, or the device's stream will before anything that reads the state."""
        for launch in self._running:
            launch.result()
        self._running = []
        self._before.copy_(self._controls)

    def place(self, arenas: Tensor) -> None:
        self._axles.masked_fill_(arenas.view(-1, 1, 1), 0)
        self._matches.masked_fill_(arenas.unsqueeze(-1), 0)
        torch.where(arenas.view(-1, 1, 1), self.state.cars.controls, self._before, out=self._before)

    def save(self) -> dict[str, Tensor]:
        return {**super().save(), "cars": self._axles.clone(), "matches": self._matches.clone(),
                "before": self._before.clone()}

    def load(self, saved: dict[str, Tensor]) -> None:
        for name, memory in (("records", self.state.memory), ("cars", self._axles), ("matches", self._matches),
                             ("before", self._before)):
            if name not in saved or saved[name].shape != memory.shape:
                raise EnvError("the saved arenas are those of another simulator: set env.rocket.simulator, env.count and the "
                               "cars to what they were, or go on without the saved arenas")
            memory.copy_(saved[name])

    @property
    def health(self) -> dict[str, int]:
        """`bad_arenas`: how often one had to begin again. What is new is logged. Nothing waits for a GPU: there it may be the
        count of the reading before."""
        self._told.copy_(self._bad.sum(0, keepdim=True), non_blocking=True)
        count = int(self._bad_arenas[0])
        if count > self._warned:
            log.warning("%d arena(s) had numbers that cannot be in the game, or a car or ball outside of the field, and began "
                        "again with a kick-off (%d since the start). If this repeats, look at the states that your starts "
                        "write.", count - self._warned, count)
            self._warned = count
        return {"bad_arenas": count}

    def _commands(self, ticks: int, delay: int) -> list[Any]:
        """Launches of a step: one for each thread, to run side by side, or in parts, one after the other."""
        if (ticks, delay) not in self._steps:
            self._steps[ticks, delay] = self._in_turn(ticks, delay) if self._in_parts else self._split(ticks, delay)
        return self._steps[ticks, delay]

    def _split(self, ticks: int, delay: int) -> list[Any]:
        ends = [self.state.arenas * i // self._threads for i in range(self._threads + 1)]
        return [self._launch(self._kernels.step, end - start, start, self._world, self._arenas, ticks, delay)
                for start, end in pairwise(ends)]

    def _in_turn(self, ticks: int, delay: int) -> list[Any]:
        arenas, seats = self.state.arenas, self.state.seats
        world, room = self._world, self._arenas
        cars = arenas * seats

        def over(kernel: Any, most: int, *inputs: Any, lanes: int = 0) -> Any:
            """A list that has `most` entries at most; `lanes` in the team of each."""
            threads = min(most * max(lanes, 1), MOST_THREADS)
            return self._launch(kernel, threads, *inputs, *([lanes] if lanes else []), threads)

        commands = [self._launch(launches.begin, arenas, room)]
        for t in range(ticks):
            commands += [
                self._launch(launches.look, arenas, world, room, t),
                self._launch(launches.sort, (seats, arenas), world, room, t),
                over(launches.feel, cars, world, room, t, lanes=self._lanes),
                over(launches.fly, cars, world, room, delay, t),
                over(launches.drive, cars, world, room, delay, t),
                over(launches.ready, cars, world, room, delay, t),
                over(launches.touch, cars, world, room, t, lanes=self._lanes),
                over(launches.settle_cars, cars, room, t),
                over(launches.bounce, arenas, world, room, t, lanes=self._lanes),
                over(launches.settle_balls, arenas, room, t),
                over(self._kernels.collide, arenas * SPREAD, world, room, t),
                self._launch(launches.watch, arenas, world, room),
            ]
        return [*commands, self._launch(launches.end, arenas, room)]

    def _launch(self, kernel: Any, dim: int | tuple[int, int], *inputs: Any) -> Any:
        return wp.launch(kernel, dim=dim, inputs=list(inputs), device=self._warp, record_cmd=True, block_dim=BLOCK)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


def _kickoffs(seats: Sequence[Sequence[Seat]], device: torch.device) -> GameState:
    table = torch.tensor(seats, dtype=torch.int32, device=device)  # [E, C, team, hitbox, present]
    state = GameState.empty(table.shape[0], table.shape[1], device)
    state.cars.team.copy_(table[..., 0])
    state.cars.hitbox.copy_(table[..., 1])
    state.cars.present.copy_(table[..., 2])
    kickoff = Kickoff()
    kickoff.bind(state)
    kickoff.write(state, torch.Generator(device).manual_seed(0))
    return state
