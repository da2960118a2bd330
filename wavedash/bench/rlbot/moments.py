"""Moments: games that the trainer's parts play, in which the bot's code looks on, packet by packet. At every tick what it knows
of the cars is held against the state, and at every decision what it sees, is offered and chooses against the trainer's."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from wavedash.bench.rlbot.arena import Arena
from wavedash.bench.rlbot.trained import Trained
from wavedash.rlbot.bot.brain import Brain
from wavedash.rlbot.bot.game import FIELDS, MOTION, Game
from wavedash.rlbot.packets import field_info
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

    def add(self, found: Any, truth: Any, rounding: float) -> None:
        """One car at one tick. Numbers within `rounding` are equal."""
        error = float(np.abs(np.asarray(found, np.float64) - np.asarray(truth, np.float64)).max())
        self.total += 1
        if error <= rounding:
            self.equal += 1
        else:
            self.error += error
            self.worst = max(self.worst, error)


@dataclass
class Counts:
    """What was compared in one game or several."""

    ticks: int = 0
    moments: int = 0
    seen: Apart = field(default_factory=Apart)
    masks: Apart = field(default_factory=Apart)
    controls: Apart = field(default_factory=Apart)
    cars: dict[str, Apart] = field(default_factory=lambda: defaultdict(Apart))
    numbers: dict[str, Apart] = field(default_factory=lambda: defaultdict(Apart))
    """By the name of a number of the observation, where it differs"""


ROUNDING = {"rotation": 3e-7, "position": 0.0, "flip_torque": 0.0}
SEEN_ROUNDING = 4e-6


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
            for player, seats in teams:
                if isinstance(player, Trained):
                    _compare_decisions(game, player, seats, brains, chosen, counts)
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
    for name in (*FIELDS, *MOTION):
        truth = getattr(cars, name)[0].numpy()
        for seat in range(len(truth)):
            counts.cars[name].add(game.arrays[name][seat], truth[seat], ROUNDING.get(name, 0.0))
    counts.cars["pads"].add(game.arrays["pads"], arena.state.pads.timer[0].numpy(), 2e-6)


def _compare_decisions(game: Game, trained: Trained, seats: range, brains: dict[int, Brain], chosen: torch.Tensor,
                       counts: Counts) -> None:
    names = trained.observation.names(chosen.shape[1]) if hasattr(trained.observation, "names") else []
    for seat in seats:
        brain = brains[seat]
        own = brain.decide(game.arrays, seat)
        counts.moments += 1
        seen = trained.seen[seat].numpy()
        counts.seen.add(brain.seen, seen, SEEN_ROUNDING)
        for i in np.flatnonzero(np.abs(brain.seen - seen) > SEEN_ROUNDING):
            counts.numbers[names[i] if names else str(i)].add(brain.seen[i], seen[i], 0.0)
        if trained.mask is not None:
            counts.masks.add(brain.mask, trained.mask[seat].numpy(), 0.0)
        counts.controls.add(own, chosen[0, seat].numpy(), 0.0)
        brain.controls = chosen[0, seat].numpy().copy()
