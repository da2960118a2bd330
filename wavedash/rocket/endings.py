"""Endings of Rocket League, beside those of any environment (`wavedash/tasks/endings.py`)."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.constants import BALL_RADIUS, GRAVITY, TICK_RATE
from wavedash.rocket.parts import Ending
from wavedash.rocket.rewards.measures import but_not, on_roof
from wavedash.rocket.state import Events, GameState
from wavedash.tasks.endings import TimeOut

__all__ = ["BallOnGround", "Goal", "NoTouch", "Recovered", "TimeOut"]


class Goal(Ending):
    """A goal of either team. Terminates."""

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return state.game.goal >= 0


class NoTouch(TimeOut):
    """No car touched the ball for `seconds`. Truncates. 30 for games, 10 while a bot learns to find the ball."""

    def __init__(self, seconds: float = 30.0) -> None:
        super().__init__(seconds)

    def restarts(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return state.cars.once("any_touch", lambda: ((events.touches > 0) & state.cars.present).any(-1))


class BallOnGround(Ending):
    """The ball comes down to the floor after it was above `height` (uu) in this episode: the end of an air dribble. Terminates,
    as the attempt is over; `truncates=True` where play would go on. A bounce between two steps counts too."""

    settings = ("height",)
    was_up: Tensor
    limit: Tensor

    def __init__(self, height: float = 300.0, truncates: bool = False) -> None:
        self.height, self.truncates = float(height), truncates

    def bind(self, state: GameState) -> None:
        self.register_buffer("was_up", torch.zeros_like(state.game.tick, dtype=torch.bool))
        self.register_buffer("limit", torch.zeros((), device=state.device), persistent=False)
        self.write_settings()

    def begin(self, state: GameState, arenas: Tensor) -> None:
        self.was_up.copy_(torch.where(arenas, state.ball.position[:, 2] > self.limit, self.was_up))

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        z = state.ball.position[:, 2]
        over = self.was_up & ((z < BALL_RADIUS + 5) | self._bounced(state, previous, events))
        self.was_up |= z > self.limit
        return over

    def write_settings(self) -> None:
        self.limit.fill_(self.height)

    def _bounced(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        """Whether the ball bounced off the floor during the step: in free fall it would be below the floor now, and no car
        touched it."""
        seconds = (state.game.tick - previous.game.tick) / TICK_RATE
        z, falling = previous.ball.position[:, 2], previous.ball.velocity[:, 2]
        below = z + falling * seconds - GRAVITY / 2 * seconds**2 < BALL_RADIUS
        return below & ~((events.touches > 0) & state.cars.present).any(-1)


class Recovered(Ending):
    """All cars that lay on their roofs in this episode are on their wheels again: the end of a turtle recovery. A demolished
    car does not count. Truncates, because play would go on; use it with the start `turtle`, beside a `time_out` for cars that
    stay on their roofs."""

    truncates = True
    down: Tensor
    """[E, C] bool: the car has been on its roof, and not on its wheels since"""

    def bind(self, state: GameState) -> None:
        self.register_buffer("down", torch.zeros_like(state.cars.present))

    def begin(self, state: GameState, arenas: Tensor) -> None:
        torch.where(arenas.unsqueeze(-1), on_roof(state.cars), self.down, out=self.down)

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        waited = self.down.any(-1)
        self.down.logical_or_(on_roof(state.cars)).logical_and_(but_not(state.cars.alive, state.cars.on_ground))
        return but_not(waited, self.down.any(-1))
