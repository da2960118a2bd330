"""The simulators alone: agent steps per second of ours by number of arenas, beside bare RocketSim on one core.

    wavedash bench sim [--device cpu|cuda] [--arenas N ...] [--starts random|kickoff] [--rounds 3] [--seconds 2]

A step is 8 ticks. Games begin from random starts and last ten seconds with random controls; only steps are timed. RocketSim
gets controls and computes physics, and nothing is read from it. All take turns.
"""
from __future__ import annotations

import argparse
import random
import statistics
from abc import ABC, abstractmethod
from time import perf_counter
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from wavedash.bench.tables import take_turns
from wavedash.rocket.actions.lookup_table import LookupTable
from wavedash.rocket.parts import Start
from wavedash.rocket.rocketsim.package import rocketsim
from wavedash.rocket.sim.simulator import WarpSimulator
from wavedash.rocket.starts import Kickoff, Random
from wavedash.rocket.state import CONTROLS, GameState
from wavedash.threads import allowed_cores

TICKS = 8
GAME = 150
"""Steps from one start to the next: ten seconds."""
ARENAS = {"cpu": [64, 256, 1024, 4096], "cuda": [1024, 4096, 16_384, 65_536, 262_144, 1_048_576]}
TEAMS = {"2v2": 2, "3v3": 3}
STARTS: dict[str, list[type[Start]]] = {"random": [Kickoff, Random], "kickoff": [Kickoff]}
TEAMS_AT = {"cpu": 1024, "cuda": 262_144}
ROCKETSIM = "RocketSim"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="wavedash bench sim", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=ARENAS, default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--arenas", type=int, nargs="+", help="numbers of arenas with one car against one")
    parser.add_argument("--starts", choices=STARTS, default="random")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of every measurement")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    cores = allowed_cores()
    threads = {"one core": 1, f"{cores} cores": cores} if options.device == "cpu" else {torch.cuda.get_device_name(): 1}
    rates = _one_against_one(options, threads)
    _print(f"1v1, {TICKS} ticks a step, {options.starts} starts: agent steps per second", "arenas", rates, threads)
    rates = _teams(options, threads)
    _print(f"{TEAMS_AT[options.device]:,} arenas, {TICKS} ticks a step: agent steps per second", "teams", rates, threads)


Rates = dict[str, dict[str, float]]
"""Medians over the rounds, by row and column."""


def _one_against_one(options: argparse.Namespace, threads: dict[str, int]) -> Rates:
    ours: dict[tuple[str, str], Ours] = {}
    for arenas in options.arenas or ARENAS[options.device]:
        for name, number in threads.items():
            ours[f"{arenas:,}", name] = Ours(arenas, 1, options, number)
    return _measured(ours, {"": BareRocketSim(1, options)}, options.rounds)


def _teams(options: argparse.Namespace, threads: dict[str, int]) -> Rates:
    ours: dict[tuple[str, str], Ours] = {}
    for team, size in TEAMS.items():
        for name, number in threads.items():
            ours[team, name] = Ours(TEAMS_AT[options.device], size, options, number)
    bare = {team: BareRocketSim(size, options) for team, size in TEAMS.items()}
    return _measured(ours, bare, options.rounds)


def _measured(ours: dict[tuple[str, str], Ours], bare: dict[str, BareRocketSim], rounds: int) -> Rates:
    """Medians of all contestants. `bare` has RocketSim by row; the row "" stands for all rows."""
    contestants: dict[str, Contestant] = {f"{row}\t{ROCKETSIM}": contestant for row, contestant in bare.items()}
    rates = take_turns({**contestants, **{"\t".join(key): contestant for key, contestant in ours.items()}}, rounds)
    table: Rates = {row: {} for row, _ in ours}
    for key, values in rates.items():
        row, column = key.split("\t")
        for name in [row] if row else list(table):
            table[name][column] = statistics.median(values)
    return table


def _print(title: str, what: str, rates: Rates, threads: dict[str, int]) -> None:
    table = Table(title=title, title_justify="left")
    for column in (what, "RocketSim, one core", *(column for name in threads for column in (name, "is"))):
        table.add_column(column, justify="right")
    for row, by_name in rates.items():
        bare = by_name.get(ROCKETSIM)
        cells = [row, "not installed" if bare is None else f"{bare:,.0f}"]
        for name in threads:
            cells += [f"{by_name[name]:,.0f}", "" if bare is None else f"{by_name[name] / bare:.1f} x"]
        table.add_row(*cells)
    Console(width=110, highlight=False).print(table)


def _starts(name: str, arenas: int, team: int, device: str = "cpu") -> GameState:
    state = GameState.empty(arenas, 2 * team, device)
    state.cars.present.fill_(True)
    state.cars.team.copy_(torch.arange(2 * team, device=device) >= team)
    generator = torch.Generator(device).manual_seed(0)
    for kind in STARTS[name]:
        start = kind()
        start.bind(state)
        start.write(state, generator)
    return state


class Contestant(ABC):
    """Called, it returns agent steps per second. It is made in its first call, which is not timed."""

    def __init__(self, team: int, options: argparse.Namespace):
        self.team, self.seconds, self.kind = team, options.seconds, options.starts
        self.agents = 0

    def __call__(self) -> float:
        if not self.agents:
            self.agents = self.make()
        steps, taken = 0, 0.0
        while taken < self.seconds:
            self.place()
            self.step(0)  # not timed: the first step of a RocketSim arena is slow
            self.finish()
            began, t = perf_counter(), 0
            while t < GAME and taken + perf_counter() - began < self.seconds:
                self.step(t)
                t += 1
                if t % 8 == 0:
                    self.finish()
            self.finish()
            steps, taken = steps + t, taken + perf_counter() - began
        return steps * self.agents / taken

    @abstractmethod
    def make(self) -> int:
        """Make the arenas; returns how many cars there are."""

    @abstractmethod
    def place(self) -> None:
        """Put all arenas into their start."""

    @abstractmethod
    def step(self, t: int) -> None:
        """Step all arenas once."""

    def finish(self) -> None:  # noqa: B027 (optional)
        """Wait until the steps are done."""


class Ours(Contestant):
    """Our simulator with so many arenas, on so many threads of a CPU."""

    def __init__(self, arenas: int, team: int, options: argparse.Namespace, threads: int):
        super().__init__(team, options)
        self.arenas, self.device, self.threads = arenas, options.device, threads

    def make(self) -> int:
        self.simulator = WarpSimulator(self.arenas, self.team, self.team, device=self.device, threads=self.threads)
        self.starts = _starts(self.kind, self.arenas, self.team, self.device)
        table = torch.tensor(LookupTable().rows(), device=self.device)
        self.controls = table[torch.randint(len(table), (16, self.arenas, 2 * self.team), device=self.device)]
        self.everywhere = torch.ones(self.arenas, dtype=torch.bool, device=self.device)
        return self.arenas * 2 * self.team

    def place(self) -> None:
        self.simulator.state.copy_(self.starts)
        self.simulator.place(self.everywhere)

    def step(self, t: int) -> None:
        self.simulator.step(self.controls[t % len(self.controls)], TICKS)

    def finish(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


class BareRocketSim(Contestant):
    """RocketSim alone, one arena after the other on one core: controls go in, nothing is read."""

    ARENAS = 64

    def make(self) -> int:
        self.rs = rs = rocketsim()
        self.starts = _starts(self.kind, self.ARENAS, self.team)
        self.random = random.Random(0)
        self.arenas = [rs.Arena(rs.GameMode.SOCCAR) for _ in range(self.ARENAS)]
        self.cars = [[arena.add_car(int(seat >= self.team)) for seat in range(2 * self.team)] for arena in self.arenas]
        kinds = {name: type(getattr(rs.CarControls(), name)) for name in CONTROLS}
        self.rows = [rs.CarControls(**{name: kinds[name](x) for name, x in zip(CONTROLS, row, strict=True)})
                     for row in LookupTable().rows()]
        return self.ARENAS * 2 * self.team

    def place(self) -> None:
        cars = self.starts.cars
        for e, (arena, seated) in enumerate(zip(self.arenas, self.cars, strict=True)):
            arena.reset_kickoff()
            arena.ball.set_state(self._put(self.rs.BallState(), self.starts.ball, e))
            for seat, car in enumerate(seated):
                body = self._put(self.rs.CarState(), cars, e, seat)
                body.boost, body.is_on_ground = float(cars.boost[e, seat]), bool(cars.on_ground[e, seat])
                body.has_jumped = bool(cars.has_jumped[e, seat])
                car.set_state(body)

    def _put(self, body: Any, part: Any, *place: int) -> Any:
        position, velocity, spin = (getattr(part, name)[place] for name in ("position", "velocity", "angular_velocity"))
        body.pos, body.vel, body.ang_vel = (self.rs.Vec(*x.tolist()) for x in (position, velocity, spin))
        body.rot_mat = self.rs.RotMat(*(self.rs.Vec(*axis.tolist()) for axis in part.rotation[place].unbind(-1)))
        return body

    def step(self, t: int) -> None:
        for arena, seated in zip(self.arenas, self.cars, strict=True):
            for car in seated:
                car.set_controls(self.random.choice(self.rows))
            arena.step(TICKS)
