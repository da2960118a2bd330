"""Dribble: how often a car that has the ball on its roof carries it for a while."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.measures.common import at_least, in_ticks, others, touches
from wavedash.rocket.parts import Measure, Outcome
from wavedash.rocket.rewards.measures import length, to_ball
from wavedash.rocket.state import Events, GameState

LOW = 100.0
"""uu of the ball's center above the car's origin: it is about 131 on the roof of an Octane, 76 beside a car on the floor"""
UPRIGHT = 0.9
"""Least vertical component of the up axis of a car that drives on the floor"""


class Dribble(Measure):
    """The ball carried on the car.

    A car carries the ball at the end of a step if it drives on the floor (three wheels or more touch, its up axis points up)
    and the ball's center is above it: at most `reach` away over the floor, and from 100 uu to `max_height` above the car's
    origin. A carry begins with a hit of such a ball. It ends when the car has not carried the ball for longer than `grace`, or
    when another car hits the ball.

    A carry is an attempt if it lasts `least` or longer: shorter ones are balls that bounce off a roof. It succeeds as soon as
    it has lasted `seconds`, once per carry, and fails if it ends before.

    `seconds`: raise it to ask for more control.
    `least`: seconds. 0 counts every ball that touched a roof, as in a task that begins with the ball on the car.
    `grace`: seconds. Raise it to allow higher bounces and bumps of the car.
    `reach`, `max_height`: uu. Raise them to allow a looser carry.
    """

    open: Tensor
    """[E, C] bool: a carry goes on"""
    done: Tensor
    """[E, C] bool: and has succeeded"""
    since: Tensor
    """[E, C]: the clock when it began"""
    last: Tensor
    """[E, C]: the clock when the ball was last carried"""

    def __init__(self, seconds: float = 2.0, least: float = 0.3, grace: float = 0.2, reach: float = 110.0,
                 max_height: float = 220.0) -> None:
        self.seconds, self.least, self.grace = in_ticks("seconds", seconds), in_ticks("least", least), in_ticks("grace", grace)
        self.reach, self.max_height = at_least("reach", reach, 0.0), at_least("max_height", max_height, LOW)

    def bind(self, state: GameState) -> None:
        for name in ("open", "done"):
            self.register_buffer(name, torch.zeros_like(state.cars.present))
        for name in ("since", "last"):
            self.register_buffer(name, torch.zeros_like(state.cars.team))

    def begin(self, state: GameState, arenas: Tensor) -> None:
        self.open.masked_fill_(arenas.unsqueeze(-1), False)

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Outcome:
        touch, clock, carries = touches(state, events), state.clock.unsqueeze(-1), self._carries(state)
        contested = others(touch)
        goes_on = self.open & ~contested & (carries | (clock - self.last <= self.grace))
        begins = carries & touch & ~contested & ~goes_on
        failure = self.open & ~goes_on & ~self.done & (self.last - self.since >= self.least)
        success = goes_on & carries & ~self.done & (clock - self.since >= self.seconds)

        self.done.copy_(goes_on & (self.done | success))
        self.open.copy_(goes_on | begins)
        self.since.copy_(torch.where(begins, clock, self.since))
        self.last.copy_(torch.where(carries, clock, self.last))
        return Outcome(failure | success, success)

    def _carries(self, state: GameState) -> Tensor:
        """[E, C] bool"""
        cars, way = state.cars, to_ball(state)
        above = (way[..., 2] >= LOW) & (way[..., 2] <= self.max_height) & (length(way[..., :2]) <= self.reach)
        return above & cars.alive & cars.on_ground & (cars.up[..., 2] >= UPRIGHT)
