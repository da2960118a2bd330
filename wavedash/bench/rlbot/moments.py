"""Moments: games that the trainer's parts play, in which the bot's code looks on, packet by packet. At every tick what it knows
of the cars is held against the state, and at every decision what it sees, is offered and chooses against the trainer's."""
from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wavedash.bench.rlbot.arena import Arena
from wavedash.bench.rlbot.trained import Trained
from wavedash.rlbot.bot.brain import Brain
from wavedash.rlbot.bot.game import FIELDS, MOTION, Game
from wavedash.rlbot.packets import field_info
from wavedash.rlbot.rotation import from_euler, to_euler
from wavedash.rocket.parts import Player

LONGEST = 30 * 120
"""Ticks after which an episode without a goal ends"""


@dataclass
class Apart:
    """How often a quantity is equal, and how large its error is."""

    total: int = 0
    equal: int = 0
    error: float = 0.0
    """Sum of the errors of all that differ"""
    worst: float = 0.0

    def add(self, found: Any, truth: Any, rounding: Any = 0.0) -> NDArray[np.bool_]:
        """Rows [n, ...] that were found, beside the true ones. Numbers within `rounding` are equal. Which rows differ."""
        apart = np.abs(np.asarray(found, np.float64) - np.asarray(truth, np.float64))
        errors = apart.reshape(len(apart), -1).max(1)
        differ: NDArray[np.bool_] = errors > rounding
        self.total += len(errors)
        self.equal += int((~differ).sum())
        self.error += float(errors[differ].sum())
        self.worst = max(self.worst, float(errors[differ].max(initial=0.0)))
        return differ

    def join(self, other: Apart) -> None:
        self.total, self.equal, self.error = self.total + other.total, self.equal + other.equal, self.error + other.error
        self.worst = max(self.worst, other.worst)


@dataclass
class Counts:
    """What was compared."""

    ticks: int = 0
    seen: Apart = field(default_factory=Apart)
    masks: Apart = field(default_factory=Apart)
    controls: Apart = field(default_factory=Apart)
    cars: dict[str, Apart] = field(default_factory=lambda: defaultdict(Apart))
    """What is known of cars, and of pads, at every tick"""
    numbers: Counter[str] = field(default_factory=Counter)
    """How often numbers of the observation differ, by their names"""


EPS = float(np.finfo(np.float32).eps)
SEEN_ROUNDING = 16 * EPS
"""Numbers of observations are at most about 2, and sums of at most three products in another order"""
ROUNDING = {"pads": 16 * EPS, "auto_flip_timer": EPS}
"""Timers of pads count the other way in packets: 10 - (10 - t). Timers of auto-flips follow from an angle"""
CONTROLS_ROUNDING = 64 * EPS
"""Continuous actions are what a small network says. Others are equal or differ by far more"""


def watch(arena: Arena, blue: Trained | Player, orange: Trained | Player, ticks: int, counts: Counts) -> None:
    """Plays so many ticks. The bots of policies look on; they decide beside the trainer, whose decision counts."""
    state = arena.state
    blues = int((state.cars.team[0] == 0).sum())
    teams = ((blue, range(blues)), (orange, range(blues, state.seats)))
    trained = next(player for player, _ in teams if isinstance(player, Trained))
    game = Game(field_info().boost_pads, Brain(trained.folder).field)
    brains = {seat: Brain(player.folder) for player, seats in teams if isinstance(player, Trained) for seat in seats}
    for player, _ in teams:
        player.bind(state)
    lost: deque[float] = deque(maxlen=getattr(trained.observation, "frames", 1))
    """What the rotations of the latest decisions lost, all of which may be seen"""
    chosen = _begin(arena, teams)
    began = 0
    for tick in range(ticks):
        if game.update(arena.packet()):
            for brain in brains.values():
                brain.begin()
        if tick > began:
            _compare_cars(game, arena, counts)
        if (tick - began) % trained.ticks == 0:
            before, decided = chosen, [player.drive(state, chosen)[:, seats.start:seats.stop] for player, seats in teams]
            chosen = torch.cat(decided, 1)
            lost.append(float(_lost_by_angles(state.cars.rotation[0].numpy()).max()))
            for player, seats in teams:
                if isinstance(player, Trained):
                    _compare_decisions(game, player, seats, brains, chosen, max(lost), counts)
        counts.ticks += 1
        arena.tick(before if (tick - began) % trained.ticks < trained.delay else chosen)
        if arena.goal or tick - began >= LONGEST:
            chosen, began = _begin(arena, teams), tick + 1
            game.forget()


def _begin(arena: Arena, teams: Sequence[tuple[Any, range]]) -> torch.Tensor:
    arena.begin()
    for player, _ in teams:
        if isinstance(player, Trained):
            player.begin(arena.state)
        else:
            player.begin(arena.state, torch.ones(1, dtype=torch.bool))
    return torch.zeros(1, arena.state.seats, 8)


def _compare_cars(game: Game, arena: Arena, counts: Counts) -> None:
    cars = arena.state.cars
    for name in FIELDS + MOTION:
        truth = getattr(cars, name)[0].numpy()
        rounding: Any = ROUNDING.get(name, 0.0)
        if name == "rotation":
            rounding = 4 * EPS
            if np.abs(game.arrays[name] - truth).max() > rounding:
                rounding = rounding + _lost_by_angles(truth)
        counts.cars[name].add(game.arrays[name], truth, rounding)
    counts.cars["pads"].add(game.arrays["pads"][None], arena.state.pads.timer.numpy(), ROUNDING["pads"])


def _lost_by_angles(rotations: NDArray[Any]) -> NDArray[Any]:
    """[n]: how much rotations [n, 3, 3] change when they are written as three angles. RocketSim's are not exactly rotations."""
    angles = np.array([to_euler(rotation) for rotation in rotations.tolist()], np.float32)
    back = [from_euler(*each) for each in angles.tolist()]
    lost: NDArray[Any] = np.abs(np.array(back) - rotations).max((1, 2))
    return lost


def _compare_decisions(game: Game, trained: Trained, seats: range, brains: Mapping[int, Brain], chosen: torch.Tensor,
                       lost: float, counts: Counts) -> None:
    """The trainer's decision counts, so that the bot goes on beside it also after a difference. `lost`: of rotations."""
    own = np.stack([brains[seat].decide(game.arrays, seat) for seat in seats])
    seen, bots = trained.seen.numpy()[seats.start:seats.stop], [brains[seat] for seat in seats]
    rounding = SEEN_ROUNDING + 4 * lost  # a vector of at most length 2 in the car's frame is a sum of three products
    looked = np.stack([bot.seen for bot in bots])
    observation: Any = trained.observation
    names: Sequence[str] = observation.names(chosen.shape[1])
    for row in np.flatnonzero(counts.seen.add(looked, seen, rounding)):
        counts.numbers.update(names[i] for i in np.flatnonzero(np.abs(looked[row] - seen[row]) > rounding))
    if trained.mask is not None:
        counts.masks.add(np.array([bot.mask for bot in bots]), trained.mask.numpy()[seats.start:seats.stop])
    decided = chosen[0, seats.start:seats.stop].numpy()
    counts.controls.add(own, decided, CONTROLS_ROUNDING)
    for bot, controls in zip(bots, decided, strict=True):
        bot.controls = controls.copy()
