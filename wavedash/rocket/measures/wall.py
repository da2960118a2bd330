"""Wall: how often a hit of a ball on a side wall sends it toward the opponent's goal."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.constants import BACK_WALL_Y, SIDE_WALL_X
from wavedash.rocket.measures.common import at_least, attack, in_ticks, others, touches
from wavedash.rocket.parts import Measure, Outcome
from wavedash.rocket.state import Events, GameState


class Wall(Measure):
    """A ball on a side wall, hit toward the opponent's goal.

    An attempt begins when a car hits a ball that is on a side wall: its center is at most `reach` from the wall and at least
    `min_height` above the floor, at the beginning or at the end of the step of the hit. It succeeds with that hit, or with a
    further one, if the ball is then on course: at `min_speed` or faster over the floor, on a straight line that seen from above
    crosses the opponent's goal line at most `width` from the middle of the goal. Rolling on along the wall is not on course. It
    fails when the car has not hit the ball for `patience` without that, or when another car hits the ball.

    `reach`: uu from the wall to the center of the ball, whose radius is 91. Raise it to count balls that fly beside the wall.
    `min_height`: uu. Lower it to count balls in the curve at the foot of the wall.
    `width`: uu. The goal reaches to 893; raise it to count hits that only center the ball.
    `min_speed`: uu/s. Raise it to count only hard hits.
    `patience`: seconds. Raise it to give the car time for a second touch.
    """

    open: Tensor
    """[E, C] bool: an attempt is undecided"""
    last: Tensor
    """[E, C]: the clock of its last hit"""

    def __init__(self, reach: float = 250.0, min_height: float = 300.0, width: float = 1800.0, min_speed: float = 800.0,
                 patience: float = 0.5) -> None:
        self.reach, self.min_height = at_least("reach", reach, 0.0), at_least("min_height", min_height, 0.0)
        self.width, self.min_speed = at_least("width", width, 0.0), at_least("min_speed", min_speed, 0.0)
        self.patience = in_ticks("patience", patience)

    def bind(self, state: GameState) -> None:
        self.register_buffer("open", torch.zeros_like(state.cars.present))
        self.register_buffer("last", torch.zeros_like(state.cars.team))

    def begin(self, state: GameState, arenas: Tensor) -> None:
        self.open.masked_fill_(arenas.unsqueeze(-1), False)

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Outcome:
        touch, clock = touches(state, events), state.clock.unsqueeze(-1)
        at_wall = (self._at_wall(state) | self._at_wall(previous)).unsqueeze(-1)
        tried = self.open | (touch & at_wall)
        success = tried & touch & self._on_course(state)
        idle = ~touch & (clock - self.last > self.patience)
        over = success | (self.open & (others(touch) | idle))
        self.open.copy_(tried & ~over)
        self.last.copy_(torch.where(touch, clock, self.last))
        return Outcome(over, success)

    def _at_wall(self, state: GameState) -> Tensor:
        """[E] bool"""
        position = state.ball.position
        return (position[:, 0].abs() >= SIDE_WALL_X - self.reach) & (position[:, 2] >= self.min_height)

    def _on_course(self, state: GameState) -> Tensor:
        """[E, C] bool: the ball moves toward the goal that the car attacks."""
        x, y, _ = state.ball.position.unsqueeze(1).unbind(-1)  # [E, 1]
        along_x, along_y, _ = state.ball.velocity.unsqueeze(1).unbind(-1)
        ahead = attack(state.cars)
        way, approach = BACK_WALL_Y - ahead * y, ahead * along_y
        fast = along_x.square() + along_y.square() >= self.min_speed**2
        return fast & (approach > 0) & ((x * approach + along_x * way).abs() <= self.width * approach)
