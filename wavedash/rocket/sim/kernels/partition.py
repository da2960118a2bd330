"""A partition of a simulator: arenas that one thread of a CPU steps, or one stream of a GPU."""
from __future__ import annotations

from typing import Any, NamedTuple

import torch
import warp as wp
from torch import Tensor

from wavedash.rocket.sim.classes import CLASS_COUNT
from wavedash.rocket.sim.collision.arena_solver import ArenaConstraint
from wavedash.rocket.sim.collision.bodies import Body
from wavedash.rocket.sim.collision.contacts import Contact, TriangleTouch, max_arena_contacts, max_contacts
from wavedash.rocket.sim.collision.mesh_reach import MAX_CANDIDATES, MeshReach
from wavedash.rocket.sim.collision.solver import Constraint
from wavedash.rocket.sim.kernels.launches import (
    SPREAD,
    begin,
    closing_kernel,
    end,
    listed_stages,
    opening_kernel,
    stage_kernel,
    whole_step,
)
from wavedash.rocket.sim.kernels.memory import Arenas
from wavedash.rocket.sim.kernels.struct_io import stride_of
from wavedash.rocket.sim.tick import Stage

MAX_TICKS = 128
"""A step has at most this many ticks"""
BLOCK = 128
"""Threads per block of a launch"""
MAX_THREADS = 1 << 15
"""At most this many threads of a GPU share a list"""
LANES = 8
"""Threads of a GPU that share the triangles around a car or ball"""


class Memory(NamedTuple):
    """What is kept of E arenas from step to step: tensors [E, ...]."""

    words: Tensor
    """The records of the game state"""
    drivetrain: Tensor
    scoring: Tensor
    controls: Tensor
    previous_controls: Tensor
    reset_count: Tensor
    """How often each arena was invalid and had to begin again"""

    def part(self, arenas: slice) -> Memory:
        return Memory(*(tensor[arenas] for tensor in self))


class Partition:
    """Some arenas with `seats` seats over their memory. `by_stage`: each stage of a tick is a launch."""

    def __init__(self, model: Any, memory: Memory, seats: int, by_stage: bool) -> None:
        self.model, self.count, self.seats, self.by_stage = model, len(memory.words), seats, by_stage
        self.device = wp.device_from_torch(memory.words.device)
        self.lanes = LANES if self.device.is_cuda else 1
        self.arenas = self._over(memory)
        self._steps: dict[tuple[int, int], list[Any]] = {}

    def step(self, ticks: int, delay: int, stream: torch.cuda.Stream | None = None) -> None:
        for launch in self.launches(ticks, delay):
            launch.launch(stream)  # torch's stream will do: Warp reads nothing but its handle

    def launches(self, ticks: int, delay: int) -> list[Any]:
        """The launches of a step, in their order."""
        if (ticks, delay) not in self._steps:
            self._steps[ticks, delay] = (self._staged if self.by_stage else self._whole)(ticks, delay)
        return self._steps[ticks, delay]

    def _whole(self, ticks: int, delay: int) -> list[Any]:
        return [self._launch(whole_step(self.seats), self.count, ticks, delay)]

    def _staged(self, ticks: int, delay: int) -> list[Any]:
        step = [self._launch(begin, self.count), self._launch(opening_kernel(self.seats), self.count, 0)]
        for tick in range(ticks):
            step += [self._over_list(stage, tick, tick < delay) for stage in listed_stages(self.seats)]
            step.append(self._launch(closing_kernel(self.seats), self.count, tick, ticks))
        return [*step, self._launch(end, self.count)]

    def _over_list(self, stage: Stage, tick: int, late: bool) -> Any:
        """A launch over the list of a class, with no more threads than the list can have entries."""
        entries = self.count * self.seats if stage.over.cars else self.count
        per_entry = self.lanes if stage.lanes else SPREAD if stage.diverges else 1
        threads = min(entries * per_entry, MAX_THREADS)
        return self._launch(stage_kernel(stage), threads, tick, late, self.lanes, threads)

    def _launch(self, kernel: Any, threads: int, *inputs: Any) -> Any:
        return wp.launch(kernel, dim=threads, inputs=[self.model, self.arenas, *inputs], device=self.device, record_cmd=True,
                         block_dim=BLOCK)

    def _over(self, memory: Memory) -> Any:
        """The arenas as kernels take them: their memory, and work memory for a tick."""
        arenas: Any = Arenas()  # Any, because its fields take Python's numbers
        arenas.words, arenas.floats = wp.from_torch(memory.words), wp.from_torch(memory.words.view(torch.float32))
        arenas.drivetrain, arenas.scoring = wp.from_torch(memory.drivetrain.flatten(1)), wp.from_torch(memory.scoring)
        arenas.controls, arenas.previous_controls = (wp.from_torch(controls.view(torch.int32).flatten(1))
                                                     for controls in (memory.controls, memory.previous_controls))
        arenas.reset_count, arenas.seats = wp.from_torch(memory.reset_count), self.seats
        arenas.ticks_done, arenas.collision_mask = self._zeros(wp.int32), self._zeros(wp.int32)
        arenas.held_pad, arenas.arena_contact_count = self._zeros(wp.int32, self.seats), self._zeros(wp.int32, 1 + self.seats)
        arenas.mesh_reach = self._zeros(wp.int32, self.seats * stride_of(MeshReach))
        arenas.bodies = self._zeros(wp.int32, (1 + self.seats) * stride_of(Body))
        arenas.contacts, arenas.constraints = (self._zeros(kind, max_contacts(self.seats)) for kind in (Contact, Constraint))
        arenas.arena_constraints = self._zeros(wp.int32, max_arena_contacts(self.seats) * stride_of(ArenaConstraint))
        arenas.lists, arenas.list_lengths = (wp.zeros((CLASS_COUNT, size), dtype=wp.int32, device=self.device)
                                             for size in (self.count * self.seats, MAX_TICKS))
        threads = MAX_THREADS if self.by_stage else self.count
        arenas.lane_touches = wp.empty(threads, dtype=TriangleTouch, device=self.device)
        arenas.candidates = wp.empty((threads // self.lanes, MAX_CANDIDATES), dtype=wp.int32, device=self.device)
        return arenas

    def _zeros(self, kind: Any, *columns: int) -> Any:
        return wp.zeros((self.count, *columns), dtype=kind, device=self.device)
