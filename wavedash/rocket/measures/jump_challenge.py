"""JumpChallenge: how often a car wins the ball when it and an opponent hit it in the air together."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.measures.common import at_least, attack, in_ticks, stands, touches
from wavedash.rocket.parts import Measure, Outcome
from wavedash.rocket.state import Events, GameState

NEVER = -(2**20)
"""A tick before all others"""


class JumpChallenge(Measure):
    """A challenge in the air (50-50) that is won.

    An attempt begins, for both, when a car and an opponent hit the ball at most `together` apart, each while its wheels stand
    on nothing, and the ball's center is above `min_height`; kick-offs are below. Further such hits prolong it. It is decided
    `after` the last of these hits, or with a goal: it succeeds if the ball then moves away from the car's own goal, along the
    field, at `min_speed` or faster, and fails otherwise. So one of the two wins, or neither does if the ball is slow.

    `together`: seconds. Raise it to count hits in quick succession.
    `after`: seconds. Raise it to let the ball leave the two cars before it is judged.
    `min_height`: uu. 0 counts kick-offs as well.
    `min_speed`: uu/s. Raise it to ask for clear wins.
    """

    open: Tensor
    """[E, C] bool: an attempt is undecided"""
    last: Tensor
    """[E, C]: the clock of the car's last hit in the air"""
    met: Tensor
    """[E, C]: the clock of the last hit of the challenge"""

    def __init__(self, together: float = 0.2, after: float = 0.3, min_height: float = 150.0, min_speed: float = 200.0) -> None:
        self.together, self.after = in_ticks("together", together), in_ticks("after", after)
        self.min_height, self.min_speed = at_least("min_height", min_height, 0.0), at_least("min_speed", min_speed, 0.0)

    def bind(self, state: GameState) -> None:
        self.register_buffer("open", torch.zeros_like(state.cars.present))
        self.register_buffer("last", torch.full_like(state.cars.team, NEVER))
        self.register_buffer("met", torch.zeros_like(state.cars.team))

    def begin(self, state: GameState, arenas: Tensor) -> None:
        self.open.masked_fill_(arenas.unsqueeze(-1), False)
        self.last.masked_fill_(arenas.unsqueeze(-1), NEVER)

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Outcome:
        cars, clock = state.cars, state.clock.unsqueeze(-1)
        high = state.ball.position[:, 2:] > self.min_height
        self.last.copy_(torch.where(touches(state, events) & ~stands(state) & high, clock, self.last))
        theirs = torch.where(cars.team == 0, self._latest(cars.team == 1), self._latest(cars.team == 0))
        first, second = torch.minimum(self.last, theirs), torch.maximum(self.last, theirs)
        meet = (second == clock) & (second - first <= self.together)

        met = torch.where(meet, clock, self.met)
        opened = self.open | meet
        over = opened & ((clock - met >= self.after) | (state.game.goal >= 0).unsqueeze(-1))
        success = over & (attack(cars) * state.ball.velocity[:, 1:2] >= self.min_speed)
        self.met.copy_(met)
        self.open.copy_(opened & ~over)
        self.last.masked_fill_(over, NEVER)
        return Outcome(over, success)

    def _latest(self, team: Tensor) -> Tensor:
        """[E, 1]: the clock of the last hit in the air of the cars in `team` [E, C]."""
        return torch.where(team, self.last, NEVER).amax(-1, keepdim=True)
