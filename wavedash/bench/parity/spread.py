"""Cars that tumble: for some starts a tiny difference grows a thousand times, so distributions are compared.

RocketSim against itself, with nudged starts, shows how far apart distributions are from chaos alone.
"""
from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor

from wavedash.bench.parity.compare import Trajectory
from wavedash.bench.parity.scene import Scene, Script
from wavedash.rocket.constants import GRAVITY, TICK_RATE
from wavedash.rocket.state import GameState

NUDGE = 0.01
"""Standard deviation of the nudge in uu and uu/s: a difference that means nothing."""
FACES = ("nose", "tail", "right", "left", "roof", "wheels")
"""The sides on which a car can lie."""
RESTING_SPEED, RESTING_SPIN = 20.0, 0.2
"""A car that is slower, in uu/s and rad/s, rests."""
GYRATION = 42.0
"""Radius of gyration in uu, about that of a car."""
ENERGY_TOLERANCE, TIME_TOLERANCE = GRAVITY * 1.0, 2 / TICK_RATE
"""The energy of 1 uu of height, and two ticks. Resting cars all have the same height, so smaller differences would count."""
CRITICAL = 1.63
"""Critical value of the two-sample Kolmogorov-Smirnov test at 1 %, to be multiplied by sqrt(2 / n)."""


@dataclass
class Spread:
    """How a scene ends in one simulator, over all arenas."""

    faces: Tensor
    """[6]: share of the cars that lie on each face at the end."""
    energy: dict[int, Tensor]
    """Energy per mass [E] by second, in (uu/s)²."""
    settled: Tensor
    """[E]: seconds until the car rests; the whole time if it does not."""


@dataclass
class SpreadRow:
    """Distances from RocketSim's distributions, 0 to 1: those of ours, and those of RocketSim with nudged starts."""

    scene: Scene
    starts: int
    theirs: Spread
    ours: Spread
    distances: dict[str, tuple[float, float]]
    """Pairs (ours, RocketSim with nudged starts) by statistic."""
    limit: float

    @property
    def misses(self) -> list[str]:
        return [name for name, (ours, _) in self.distances.items() if not ours < self.limit]


def nudged(script: Script) -> Script:
    start = script.start.clone()
    generator = torch.Generator().manual_seed(0)
    for values in (start.cars.position, start.cars.velocity):
        values.add_(torch.randn(values.shape, generator=generator) * NUDGE)
    return Script(start, script.controls)


def compare_spread(scene: Scene, theirs: Trajectory, ours: Trajectory, nudged: Trajectory) -> SpreadRow:
    reference, candidate, natural = (_spread(scene, states) for states in (theirs, ours, nudged))
    found = {name: (_distances(reference, candidate)[name], _distances(reference, natural)[name])
             for name in _distances(reference, reference)}
    starts = theirs[0].arenas
    return SpreadRow(scene, starts, reference, candidate, found, CRITICAL * sqrt(2 / starts))


def _spread(scene: Scene, states: Trajectory) -> Spread:
    (seat,), last = scene.seats, len(states) - 1
    down = -states[-1].cars.rotation[:, seat, 2, :]  # [E, 3]: down, in the axes of the car
    axis = down.abs().argmax(-1)
    face = 2 * axis + (down.gather(-1, axis.unsqueeze(-1)).squeeze(-1) < 0)
    faces = torch.bincount(face, minlength=len(FACES)) / len(face)
    rests = torch.stack([_rests(state, seat) for state in states])  # [T, E]
    moving = (~rests).int().flip(0).argmax(0)  # ticks at rest at the end
    moving = torch.where(rests.all(0), last + 1, moving)
    seconds = (last + 1 - moving).float() / TICK_RATE
    return Spread(faces, {s: _energy(states[s * TICK_RATE], seat) for s in range(1, last // TICK_RATE + 1)}, seconds)


def _rests(state: GameState, seat: int) -> Tensor:
    slow = state.cars.velocity[:, seat].norm(dim=-1) < RESTING_SPEED
    return slow & (state.cars.angular_velocity[:, seat].norm(dim=-1) < RESTING_SPIN)


def _energy(state: GameState, seat: int) -> Tensor:
    cars = state.cars
    moving = cars.velocity[:, seat].square().sum(-1) + GYRATION**2 * cars.angular_velocity[:, seat].square().sum(-1)
    return moving / 2 + GRAVITY * cars.position[:, seat, 2]


def _distances(a: Spread, b: Spread) -> dict[str, float]:
    found = {
        "rest pose": float((a.faces - b.faces).abs().max()),
        "time to settle": kolmogorov_smirnov(a.settled, b.settled, TIME_TOLERANCE),
    }
    for second, energy in a.energy.items():
        found[f"energy after {second} s"] = kolmogorov_smirnov(energy, b.energy[second], ENERGY_TOLERANCE)
    return found


def kolmogorov_smirnov(a: Tensor, b: Tensor, tolerance: float = 0.0) -> float:
    """The largest distance between two cumulative distributions [n], [m], where one may be shifted by the tolerance to be
    nearer to the other. NaN counts as larger than all numbers."""
    a, b = (x.double().nan_to_num(nan=float("inf")).sort().values for x in (a, b))
    return max(_excess(a, b, tolerance), _excess(b, a, tolerance), 0.0)


def _excess(a: Tensor, b: Tensor, tolerance: float) -> float:
    """The most by which the distribution of sorted `a` lies above that of sorted `b`."""
    below = torch.searchsorted(b, a + tolerance, right=True) / len(b)
    return float((torch.arange(1, len(a) + 1) / len(a) - below).max())
