"""Turtle: how often, and how fast, a car that has fallen on its roof is back on its wheels."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.measures.common import in_ticks
from wavedash.rocket.parts import Measure, Outcome
from wavedash.rocket.rewards.measures import on_roof
from wavedash.rocket.state import Events, GameState


class Turtle(Measure):
    """Recovery from the roof.

    An attempt begins when a car lies on its roof: its body touches the arena, fewer than three wheels do, and its up axis is
    more than 120 degrees from the normal of that surface. A car that begins its episode so is one too. It succeeds when three
    wheels touch something, on the floor or on a wall, at most `window` seconds later, and fails when the window has passed. A
    car that stays on its roof fails once: it must be on its wheels before it counts again. A demolition decides nothing.

    `attempt/turtle_ticks` is the mean time of the successes, in ticks from the step that saw the car on its roof to the step
    that saw it on its wheels. The start `turtle` makes such attempts; the reward `recovery` pays for them.

    `window`: seconds. Raise it to count slow recoveries as well.
    """

    timed = True
    down: Tensor
    """[E, C] bool: the car has been on its roof, and not on its wheels since"""
    missed: Tensor
    """[E, C] bool: and its window has passed"""
    since: Tensor
    """[E, C]: the clock when it fell"""

    def __init__(self, window: float = 3.0) -> None:
        self.limit = in_ticks("window", window)

    def bind(self, state: GameState) -> None:
        self.register_buffer("down", torch.zeros_like(state.cars.present))
        self.register_buffer("missed", torch.zeros_like(state.cars.present))
        self.register_buffer("since", torch.zeros_like(state.cars.team))

    def begin(self, state: GameState, arenas: Tensor) -> None:
        begins = arenas.unsqueeze(-1)
        torch.where(begins, on_roof(state.cars), self.down, out=self.down)
        self.missed.masked_fill_(begins, False)
        torch.where(begins, state.clock.unsqueeze(-1), self.since, out=self.since)

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Outcome:
        cars, clock = state.cars, state.clock.unsqueeze(-1)
        ticks = clock - self.since
        late, wheels = ticks > self.limit, cars.on_ground
        over = self.down & ~self.missed & cars.alive & (late | wheels)
        success = over & wheels & ~late

        roof = on_roof(cars)
        self.since.copy_(torch.where(roof & ~self.down, clock, self.since))
        self.missed.logical_or_(over)
        self.down.logical_or_(roof).logical_and_(~wheels & cars.alive)
        self.missed.logical_and_(self.down)
        return Outcome(over, success, ticks)
