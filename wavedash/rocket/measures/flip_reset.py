"""FlipReset: how often a flip that a car got back from the ball in the air is used for a hit."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.measures.common import at_least, in_ticks, stands, touches, wheels_at_ball
from wavedash.rocket.parts import Measure, Outcome
from wavedash.rocket.rewards.measures import flip_left
from wavedash.rocket.state import Events, GameState

NONE = -1


class FlipReset(Measure):
    """A flip reset that is gained and used.

    An attempt begins when a car in the air, higher than `min_height`, gets its used flip back from its wheels on the ball. It
    succeeds when the car then flips, and hits the ball at most `within` after the flip began; ticks are told apart, so that the
    contact of the reset is not that hit. It fails when that time has passed, when the car double jumps instead, stands on the
    arena, is demolished, or gets its flip back once more. A car that does not flip is undecided until it comes down. A flip
    that begins and is given back by the ball within one step is not seen.

    `within`: seconds. A flip turns the car for 0.65; raise it to count hits after it.
    `min_height`: uu. Lower it to count resets close to the floor.
    """

    open: Tensor
    """[E, C] bool: a reset was gained, and the attempt is undecided"""
    flip: Tensor
    """[E, C]: the tick in which the flip after it began, NONE: it has not"""

    def __init__(self, within: float = 0.65, min_height: float = 250.0) -> None:
        self.within, self.min_height = in_ticks("within", within), at_least("min_height", min_height, 0.0)

    def bind(self, state: GameState) -> None:
        self.register_buffer("open", torch.zeros_like(state.cars.present))
        self.register_buffer("flip", torch.full_like(state.cars.team, NONE))

    def begin(self, state: GameState, arenas: Tensor) -> None:
        self.open.masked_fill_(arenas.unsqueeze(-1), False)

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Outcome:
        cars, clock = state.cars, state.clock.unsqueeze(-1)
        high = cars.position[..., 2] > self.min_height
        gained = flip_left(cars) & ~flip_left(previous.cars) & wheels_at_ball(state) & high & cars.alive

        flips = self.open & cars.has_flipped & (self.flip == NONE)
        began = (clock - cars.flip_time * TICK_RATE).round().int()  # `flip_time` is one tick after the first tick of a flip
        flip = torch.where(flips, began, self.flip)
        used = flip != NONE
        hit = touches(state, events) & (cars.ball_hit_tick >= flip) & (cars.ball_hit_tick - flip <= self.within)
        success = self.open & used & hit
        lost = gained | stands(state) | ~cars.alive | cars.has_double_jumped | (used & (clock - flip > self.within))
        over = success | (self.open & lost)

        self.flip.copy_(torch.where(gained | over, NONE, flip))
        self.open.copy_(gained | (self.open & ~over))
        return Outcome(over, success)
