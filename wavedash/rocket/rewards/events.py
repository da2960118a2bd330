"""Rewards for events of the step. They pay 1 for an event, or -1 for a bad one: give all of them positive weights.

Typical weights are those of a step of 8 ticks (15 steps a second), beside `goal: 10`.
"""
from __future__ import annotations

from torch import Tensor

from wavedash.rocket.parts import Reward
from wavedash.rocket.rewards.measures import touched
from wavedash.rocket.state import Events, GameState


class Goal(Reward):
    """1 for every car of the team that scored. What the game is about, but too rare to learn from alone. Typical weight:
    10; much more drowns the rest. Cannot be farmed.

    `mates`: what the other cars of the team get; below 1 the scorer gets more than they do. With 0 an own goal of the opponents
    pays nothing.
    """

    sparse = True

    def __init__(self, mates: float = 1.0):
        self.mates = mates

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        team_scored = state.game.goal.unsqueeze(-1) == state.cars.team
        return self.mates * team_scored + (1.0 - self.mates) * events.goal


class Concede(Reward):
    """-1 for every car of the team that let a goal in. Typical weight: that of `goal` or a little less, which makes bolder
    bots. Cannot be farmed, but a bot that can only defend may learn to hide in its goal."""

    sparse = True

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return -(state.game.goal.unsqueeze(-1) == 1 - state.cars.team).float()


class Assist(Reward):
    """1 for the car whose touch led to a goal of a team mate. For passing in 2v2 and 3v3. Typical weight: 3."""

    sparse = True

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return events.assist


class Touch(Reward):
    """1 in every step in which the car touches the ball. The first thing to learn. Typical weight: 2 at the beginning, 0.1
    once the bot hits the ball. Farmed by pushing or carrying the ball: move on to `strong_hit`."""

    sparse = True

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return touched(events)


class Shot(Reward):
    """1 for a touch that puts the ball on course for the other goal. For bots that hit the ball but do not aim yet. Typical
    weight: 2. Farmed by rolling the ball at the goal again and again: keep it well below `goal`."""

    sparse = True

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return events.shot


class Save(Reward):
    """1 for a touch that keeps the ball out of the car's own goal. Typical weight: 3. Farmed by allowing shots: keep it below
    `concede`."""

    sparse = True

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return events.save


class Demo(Reward):
    """1 for demolishing an opponent. Typical weight: 1. Farmed by hunting cars instead of the ball: keep it below `goal`."""

    sparse = True

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return events.demolished >= 0


class Demoed(Reward):
    """-1 for being demolished. Teaches to look out for opponents. Typical weight: 1; much more makes bots that run away."""

    sparse = True

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return -(state.cars.is_demoed & ~previous.cars.is_demoed).float()


class BoostPickup(Reward):
    """`big` for a big pad, `small` for a small one. For bots that play but run out of boost. Typical weight: 0.5. Farmed by
    touring the pads instead of playing. Small pads hold 12 of 100 boost, yet they are worth more than that: they lie on the
    way."""

    sparse = True

    def __init__(self, small: float = 0.3, big: float = 1.0):
        self.small, self.big = small, big

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return self.small * events.small_pads + self.big * events.big_pads
