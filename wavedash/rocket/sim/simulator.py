"""WarpSimulator: E arenas in Warp kernels, on a CPU or a GPU."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import torch
import warp as wp
from torch import Tensor

from wavedash.envs.errors import EnvError
from wavedash.rocket.seats import Seat, seated
from wavedash.rocket.sim.arena import load_arena
from wavedash.rocket.sim.contacts import Contact, most_contacts
from wavedash.rocket.sim.package import announced
from wavedash.rocket.sim.pads import pad_table
from wavedash.rocket.sim.records import view
from wavedash.rocket.sim.scoring import Match
from wavedash.rocket.sim.shapes import car_shapes
from wavedash.rocket.sim.solver import Row
from wavedash.rocket.sim.suspension import Axles
from wavedash.rocket.sim.tick import World, step_kernel
from wavedash.rocket.simulator import Simulator
from wavedash.rocket.starts import Kickoff
from wavedash.rocket.state import GameState


class WarpSimulator(Simulator):
    """`arenas` with `blue` and `orange` seats, all stepped by one launch. It begins with kick-offs. `state` is the memory that
    the kernel works on.

    `hitboxes`: of all cars, or one for each seat. `sizes`: how many of the seats are taken in each arena, (blue, orange); None:
    all. `threads`: of a CPU, all by default.

    - A goal stops its arena for the rest of the step, as with RocketSim.
    - The same states and controls give the same games on the same kind of device, bit for bit, whatever the number of threads.
    - Nothing waits for a GPU, and a step can be recorded in a CUDA graph.
    """

    def __init__(self, arenas: int, blue: int, orange: int, *, hitboxes: str | Sequence[str] = "octane",
                 device: torch.device | str = "cpu", sizes: Sequence[tuple[int, int]] | None = None,
                 threads: int | None = None) -> None:
        self.device = torch.device(device)
        self.capturable = self.device.type == "cuda"
        seats = blue + orange
        self.state = _kickoffs(seated(arenas, blue, orange, hitboxes, sizes), self.device)
        warp = wp.device_from_torch(self.device)
        self._warp = warp
        self._memory = _Remembered(Axles, (arenas, seats), self.device)
        self._match = _Remembered(Match, (arenas,), self.device)
        self._room = wp.empty((arenas, most_contacts(seats)), dtype=Contact, device=warp)
        self._rows = wp.empty((arenas, most_contacts(seats)), dtype=Row, device=warp)
        self._controls = torch.zeros(arenas, seats, 8, device=self.device)
        world = World()
        world.arena, world.shapes, world.pads = load_arena(warp), car_shapes(warp), pad_table(warp)
        self._arguments = [
            world, *(view(self.state, part) for part in ("ball", "cars", "pads", "game", "events")), self._memory.array,
            self._match.array, self._room, self._rows, wp.from_torch(self._controls),
        ]
        self._kernel = step_kernel(seats)
        self._threads = 1 if self.device.type == "cuda" else min(threads or os.cpu_count() or 1, arenas)
        self._pool = ThreadPoolExecutor(self._threads) if self._threads > 1 else None
        self._steps: dict[tuple[int, int], list[Any]] = {}
        with announced(f"arenas with {seats} car(s) on {self.device}"):
            self._commands(ticks=8, delay=1)  # a kernel cannot be loaded while a graph is being recorded

    def send(self, controls: Tensor, ticks: int, delay: int = 0) -> None:
        if not 0 <= delay <= ticks:
            raise EnvError(f"a delay of {delay} ticks is not within a step of {ticks} ticks")
        self._controls.copy_(controls)
        commands = self._commands(ticks, delay)
        if self.device.type == "cuda":
            commands[0].launch(torch.cuda.current_stream(self.device))  # of a stream it takes nothing but its handle
        elif self._pool is None:
            commands[0].launch()
        else:
            list(self._pool.map(lambda command: command.launch(), commands))

    def recv(self) -> None:
        """`send` has done it, or the device's stream will before anything that reads the state."""

    def place(self, arenas: Tensor) -> None:
        self._memory.clear(arenas)
        self._match.clear(arenas)

    def save(self) -> dict[str, Tensor]:
        return {**super().save(), "cars": self._memory.memory.clone(), "matches": self._match.memory.clone()}

    def load(self, saved: dict[str, Tensor]) -> None:
        for name, memory in (("records", self.state.memory), ("cars", self._memory.memory), ("matches", self._match.memory)):
            if name not in saved or saved[name].shape != memory.shape:
                raise EnvError("the saved arenas are those of another simulator: set env.rocket.simulator, env.count and the "
                               "cars to what they were, or go on without the saved arenas")
            memory.copy_(saved[name])

    def _commands(self, ticks: int, delay: int) -> list[Any]:
        """Launches that step all arenas, one for each thread."""
        if (ticks, delay) not in self._steps:
            ends = [self.state.arenas * i // self._threads for i in range(self._threads + 1)]
            self._steps[ticks, delay] = [
                wp.launch(self._kernel, dim=end - start, inputs=[start, *self._arguments, ticks, delay], device=self._warp,
                          record_cmd=True)
                for start, end in pairwise(ends)
            ]
        return self._steps[ticks, delay]

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


class _Remembered:
    """Structs of a kernel in the memory of a tensor of bytes [..., B], which can be saved and cleared."""

    def __init__(self, kind: Any, shape: tuple[int, ...], device: torch.device):
        size = ctypes.sizeof(kind.ctype)
        self.memory = torch.zeros(*shape, size, dtype=torch.uint8, device=device)
        self.array = wp.array(ptr=self.memory.data_ptr(), dtype=kind, shape=shape, device=wp.device_from_torch(device),
                              copy=False)

    def clear(self, arenas: Tensor) -> None:
        """To zeros, for these arenas [E]."""
        self.memory.masked_fill_(arenas.view(-1, *(1,) * (self.memory.dim() - 1)), 0)


def _kickoffs(seats: Sequence[Sequence[Seat]], device: torch.device) -> GameState:
    table = torch.tensor(seats, dtype=torch.int32, device=device)  # [E, C, team, hitbox, present]
    state = GameState.empty(*table.shape[:2], device)
    state.cars.team.copy_(table[..., 0])
    state.cars.hitbox.copy_(table[..., 1])
    state.cars.present.copy_(table[..., 2])
    kickoff = Kickoff()
    kickoff.bind(state)
    kickoff.write(state, torch.Generator(device).manual_seed(0))
    return state
