"""Lockstep: exported bots drive cars of RocketSim through packets, tick by tick, beside the same game as our evaluation plays
it."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wavedash.bench.rlbot.arena import Arena
from wavedash.rlbot.bot.player import Player as BotPlayer
from wavedash.rocket.parts import Player
from wavedash.rocket.state import CONTROLS, GameState

COUNTDOWN_TICKS = 30
LONGEST = 60 * 120
"""Ticks after which an episode without a goal ends"""


class BotSide:
    """The seats of one arena that bots drive. What they answer to a frame is in force `latency` ticks after the next."""

    def __init__(self, arena: Arena, bots: Mapping[int, BotPlayer], latency: int) -> None:
        self.arena, self.bots = arena, bots
        self._coming = [torch.zeros(1, arena.state.seats, 8) for _ in range(latency)]
        self.in_force = torch.zeros(1, arena.state.seats, 8)

    def answer(self, packet: Any) -> Tensor:
        """The bots answer a packet. The controls [1, C, 8] of the next tick; other seats have zeros."""
        controls = torch.zeros_like(self.in_force)
        for seat, bot in self.bots.items():
            controls[0, seat] = torch.from_numpy(bot.controls(packet, seat).copy())
        self._coming.append(controls)
        self.in_force = self._coming.pop(0)
        return self.in_force

    def count_down(self) -> None:
        """Frames in which nothing moves, before a kick-off. Packets show inputs also then."""
        for _ in range(COUNTDOWN_TICKS):
            self.answer(self.arena.countdown_packet(self.in_force))
            self.arena.frame += 1


@dataclass
class Course:
    """How long two games were the same."""

    ticks: int = 0
    """Ticks that were played"""
    same: int = 0
    """Ticks up to the first difference, of controls in a tick or of a bit of the state after a decision"""
    decisions: int = 0
    goals: int = 0
    difference: str = ""


def race(make: Callable[[], Arena], trained: Callable[[], Sequence[Player]], bots: Mapping[int, BotPlayer], ticks: int,
         latency: int = 1, period: int = 8, delay: int = 1) -> Course:
    """Plays the same game twice: as our evaluation does, and with bots in some of the seats. `trained`: the player of each
    seat; `bots`: those in whose place a bot plays. The games end at the first difference."""
    ours, theirs = make(), make()
    players, opponents = trained(), trained()
    side, course = BotSide(theirs, bots, latency), Course()
    for arena, drivers in ((ours, players), (theirs, opponents)):
        for player in dict.fromkeys(drivers):
            player.bind(arena.state)
    try:
        while course.ticks < ticks and not course.difference:
            _play_episode(ours, side, players, opponents, course, ticks, period, delay)
    finally:
        ours.close()
        theirs.close()
    return course


def _play_episode(ours: Arena, side: BotSide, players: Sequence[Any], opponents: Sequence[Any], course: Course, ticks: int,
                  period: int, delay: int) -> None:
    theirs, everywhere = side.arena, torch.ones(1, dtype=torch.bool)
    for arena, drivers in ((ours, players), (theirs, opponents)):
        arena.begin()
        for player in dict.fromkeys(drivers):
            player.begin(arena.state, everywhere)
    side.count_down()
    chosen = told = torch.zeros(1, ours.state.seats, 8)
    for _ in range(0, LONGEST, period):
        before, told_before = chosen, told
        chosen, told = _decide(players, ours.state, chosen), _decide(opponents, theirs.state, told)
        course.decisions += 1
        ours.simulator.step(chosen, period, delay)
        for tick in range(period):
            script = told_before if tick < delay else told
            answered = side.answer(theirs.packet())
            driven = torch.tensor([seat in side.bots for seat in range(ours.state.seats)]).view(1, -1, 1)
            controls = torch.where(driven, answered, script)
            theirs.tick(controls)
            course.ticks += 1
            expected = before if tick < delay else chosen
            if not torch.equal(controls, expected):
                course.difference = _explain(course, controls, expected)
                return
            course.same += 1
            if theirs.goal:
                break
        if ours.goal != theirs.goal or _apart(ours.state, theirs.state):
            course.difference = f"the states differ after tick {course.ticks}: {', '.join(_apart(ours.state, theirs.state))}"
            course.same -= period
            return
        if ours.goal or course.ticks >= ticks:
            course.goals += ours.goal
            return


def _decide(players: Sequence[Any], state: GameState, chosen: Tensor) -> Tensor:
    """The controls of all seats, each by its player."""
    decided = {player: player.drive(state, chosen) for player in dict.fromkeys(players)}
    return torch.stack([decided[player][:, seat] for seat, player in enumerate(players)], 1)


def _apart(ours: GameState, theirs: GameState) -> list[str]:
    """Fields that differ in any bit. The clock and what happened in the last step are counted differently tick by tick."""
    return [f"{part}.{name}" for part in ("ball", "cars", "pads") for name, x in vars(getattr(ours, part)).items()
            if torch.is_tensor(x) and name not in ("ball_hit_tick", "ball_hit_impulse_tick")
            and not torch.equal(x, getattr(getattr(theirs, part), name))]


def _explain(course: Course, controls: Tensor, expected: Tensor) -> str:
    seat = int((controls != expected).any(-1)[0].nonzero()[0])
    names = [CONTROLS[i] for i in np.flatnonzero((controls != expected)[0, seat].numpy())]
    return f"seat {seat} has other controls in tick {course.ticks}: {', '.join(names)}"
