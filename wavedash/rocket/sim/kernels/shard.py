"""Arenas that are stepped together: by one thread of a CPU, or one after the other's launches on a stream of a GPU."""
from __future__ import annotations

from typing import Any, NamedTuple

import torch
import warp as wp
from torch import Tensor

from wavedash.rocket.sim.collision.bodies import Body
from wavedash.rocket.sim.collision.contacts import Contact, Touch, most_contacts, most_with_arena
from wavedash.rocket.sim.collision.mesh_reach import ROOM_FOR_WALLS, Reach
from wavedash.rocket.sim.collision.solver import Row, WallRow
from wavedash.rocket.sim.kernels import launches
from wavedash.rocket.sim.kernels.launches import SPREAD, kernels
from wavedash.rocket.sim.kernels.memory import LISTS, Arenas
from wavedash.rocket.sim.kernels.struct_io import room_of

MOST_TICKS = 128
"""Of a step"""
BLOCK = 128
"""Threads of a GPU that share a multiprocessor's registers"""
MOST_THREADS = 1 << 15
"""Of a GPU, that share a list"""
LANES = 8
"""Of a GPU's threads, that share the triangles around a car or ball"""


class Memory(NamedTuple):
    """What of some arenas is kept from step to step: [E, ...]"""

    words: Tensor
    """Of the records"""
    axles: Tensor
    matches: Tensor
    controls: Tensor
    before: Tensor
    bad: Tensor
    """How often each had to begin again"""

    def part(self, arenas: slice) -> Memory:
        return Memory(*(tensor[arenas] for tensor in self))


class Group:
    """Some arenas with `seats` seats over their memory. `in_parts`: each part of a tick is a launch."""

    def __init__(self, world: Any, memory: Memory, seats: int, in_parts: bool) -> None:
        self.world, self.count, self.seats, self.in_parts = world, len(memory.words), seats, in_parts
        self.device = wp.device_from_torch(memory.words.device)
        self.lanes = LANES if self.device.is_cuda else 1
        self.arenas = self._over(memory)
        self._steps: dict[tuple[int, int], list[Any]] = {}

    def step(self, ticks: int, delay: int, stream: torch.cuda.Stream | None = None) -> None:
        for launch in self.launches(ticks, delay):
            launch.launch(stream)  # of a stream a launch takes nothing but its handle

    def launches(self, ticks: int, delay: int) -> list[Any]:
        """Of a step, in their order."""
        if (ticks, delay) not in self._steps:
            self._steps[ticks, delay] = (self._parts if self.in_parts else self._whole)(ticks, delay)
        return self._steps[ticks, delay]

    def _whole(self, ticks: int, delay: int) -> list[Any]:
        return [self._launch(kernels(self.seats).step, self.count, self.world, self.arenas, ticks, delay)]

    def _parts(self, ticks: int, delay: int) -> list[Any]:
        world, arenas, cars = self.world, self.arenas, self.count * self.seats
        step = [self._launch(kernel, self.count, world, arenas) for kernel in (launches.begin, launches.look)]
        for t in range(ticks):
            step += [
                self._over_list(launches.sift, cars, world, arenas, t),
                self._over_list(launches.feel, cars * self.lanes, world, arenas, t, self.lanes),
                self._over_list(launches.fly, cars, world, arenas, delay, t),
                self._over_list(launches.drive, cars, world, arenas, delay, t),
                self._over_list(launches.ready, cars, world, arenas, delay, t),
                self._over_list(launches.touch, cars * self.lanes, world, arenas, t, self.lanes),
                self._over_list(launches.settle_cars, cars, arenas, t),
                self._over_list(launches.bounce, self.count * self.lanes, world, arenas, t, self.lanes),
                self._over_list(launches.settle_balls, self.count, arenas, t),
                self._over_list(kernels(self.seats).collide, self.count * SPREAD, world, arenas, t),
                self._launch(launches.watch, self.count, world, arenas, t, ticks),
            ]
        return [*step, self._launch(launches.end, self.count, world, arenas)]

    def _over_list(self, kernel: Any, most: int, *inputs: Any) -> Any:
        """A launch that would not need more than `most` threads."""
        threads = min(most, MOST_THREADS)
        return self._launch(kernel, threads, *inputs, threads)

    def _launch(self, kernel: Any, threads: int, *inputs: Any) -> Any:
        return wp.launch(kernel, dim=threads, inputs=list(inputs), device=self.device, record_cmd=True, block_dim=BLOCK)

    def _over(self, memory: Memory) -> Any:
        """What kernels are handed: the memory, and room for a tick's work."""
        arenas: Any = Arenas()  # whose fields take Python's numbers
        arenas.words, arenas.numbers = wp.from_torch(memory.words), wp.from_torch(memory.words.view(torch.float32))
        arenas.axles, arenas.matches = wp.from_torch(memory.axles.flatten(1)), wp.from_torch(memory.matches)
        arenas.controls, arenas.before = (wp.from_torch(commands.view(torch.int32).flatten(1))
                                          for commands in (memory.controls, memory.before))
        arenas.bad, arenas.seats = wp.from_torch(memory.bad), self.seats
        arenas.done, arenas.meeting = self._room(wp.int32), self._room(wp.int32)
        arenas.held, arenas.touching = self._room(wp.int32, self.seats), self._room(wp.int32, 1 + self.seats)
        arenas.reach = self._room(wp.int32, self.seats * room_of(Reach))
        arenas.bodies = self._room(wp.int32, (1 + self.seats) * room_of(Body))
        arenas.contacts, arenas.rows = (self._room(kind, most_contacts(self.seats)) for kind in (Contact, Row))
        arenas.wall_rows = self._room(wp.int32, most_with_arena(self.seats) * room_of(WallRow))
        arenas.lists, arenas.many = (wp.zeros((LISTS, size), dtype=wp.int32, device=self.device)
                                     for size in (self.count * self.seats, MOST_TICKS))
        threads = MOST_THREADS if self.in_parts else self.count
        arenas.touches = wp.empty(threads, dtype=Touch, device=self.device)
        arenas.listed = wp.empty((threads // self.lanes, ROOM_FOR_WALLS), dtype=wp.int32, device=self.device)
        return arenas

    def _room(self, kind: Any, *columns: int) -> Any:
        return wp.zeros((self.count, *columns), dtype=kind, device=self.device)
