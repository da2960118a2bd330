"""AirDribble: how often a car that hits the ball in the air hits it again and again before it comes down."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.measures.common import at_least, in_ticks, others, stands, touches
from wavedash.rocket.parts import Measure, Outcome
from wavedash.rocket.state import Events, GameState


class AirDribble(Measure):
    """The ball carried in the air, by so many hits of the same car without contact with the arena.

    A carry begins when a car that flies hits a ball that flies: both centers are above `min_height`, and the car's wheels do
    not stand on anything but the ball. A further hit counts if it comes `apart` or more after the last one that counted, so
    that one long contact is not many hits. The carry ends when the car stands, comes down below `min_height` or is demolished,
    when the ball comes down below it, when `patience` has passed since the last hit that counted, or when another car hits the
    ball.

    A carry is an attempt if it has `least` hits or more: a single one is an aerial. It succeeds as soon as it has `hits`, once
    per carry, and fails if it ends before.

    `hits`: raise it to ask for longer carries.
    `least`: hits. 1 counts every aerial, as in a task that begins in the middle of an air dribble.
    `apart`: seconds. Raise it to ask for clearer separate hits.
    `patience`: seconds. Raise it to allow hits that send the ball farther ahead.
    `min_height`: uu. Raise it to count only high carries.
    """

    count: Tensor
    """[E, C]: hits of the carry, 0: there is none"""
    done: Tensor
    """[E, C] bool: the carry has succeeded"""
    last: Tensor
    """[E, C]: the clock of the last hit that counted"""

    def __init__(self, hits: int = 3, least: int = 2, apart: float = 0.2, patience: float = 1.0,
                 min_height: float = 250.0) -> None:
        self.hits, self.least = at_least("hits", hits, 2), at_least("least", least, 1)
        self.apart, self.patience = in_ticks("apart", apart), in_ticks("patience", patience)
        self.min_height = at_least("min_height", min_height, 0.0)

    def bind(self, state: GameState) -> None:
        self.register_buffer("done", torch.zeros_like(state.cars.present))
        for name in ("count", "last"):
            self.register_buffer(name, torch.zeros_like(state.cars.team))

    def begin(self, state: GameState, arenas: Tensor) -> None:
        self.count.masked_fill_(arenas.unsqueeze(-1), 0)

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Outcome:
        touch, clock, flies = touches(state, events), state.clock.unsqueeze(-1), self._flies(state)
        ago = clock - self.last
        exists = self.count > 0
        goes_on = exists & flies & ~others(touch) & (ago <= self.patience)
        counts = touch & flies & (~goes_on | (ago >= self.apart))
        count = self.count * goes_on + counts
        failure = exists & ~goes_on & ~self.done & (self.count >= self.least)
        success = goes_on & counts & ~self.done & (count >= self.hits)

        self.done.copy_(goes_on & (self.done | success))
        self.count.copy_(count)
        self.last.copy_(torch.where(counts, clock, self.last))
        return Outcome(failure | success, success)

    def _flies(self, state: GameState) -> Tensor:
        """[E, C] bool: car and ball are in the air."""
        high = (state.cars.position[..., 2] > self.min_height) & (state.ball.position[:, 2:] > self.min_height)
        return high & state.cars.alive & ~stands(state)
