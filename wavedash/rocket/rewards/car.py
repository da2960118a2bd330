"""Rewards for the motion and position of a car, and for its boost.

Typical weights are those of a step of 8 ticks (15 steps a second), beside `goal: 10`.
"""
from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from wavedash.rocket.constants import BOOST_MAX, CAR_MAX_SPEED
from wavedash.rocket.parts import Reward
from wavedash.rocket.rewards.measures import (
    along,
    attacked,
    defended,
    distance_to_ball,
    goal_backs,
    length,
    to_ball,
    toward_ball,
)
from wavedash.rocket.state import Events, GameState


class VelocityPlayerToBall(Reward):
    """Speed of the car toward the ball, 1 at full speed (2300 uu/s), negative when it leaves. The first thing to learn,
    with `touch`. Typical weight: 0.2 at the beginning, 0.02 later. Farmed by chasing the ball without ever making room.

    `leaving`: what moving away counts; 0 where turning away to fetch boost or to defend should cost nothing.
    """

    def __init__(self, leaving: float = 1.0):
        self.leaving = leaving

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        speed = toward_ball(state, state.cars.velocity) / CAR_MAX_SPEED
        return leaky_relu(speed, self.leaving)  # below 0: times `leaving`


class Kickoff(VelocityPlayerToBall):
    """`velocity_player_to_ball` while the ball lies in the center and no car has touched it. Makes quick kick-offs. Typical
    weight: 0.2. Cannot be farmed: it ends with the first touch."""

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        in_center = length(state.ball.position[:, :2]) < 1.0
        return super().__call__(state, previous, events) * in_center.unsqueeze(-1)


class FaceBall(Reward):
    """How well the nose points at the ball: 1 straight at it, -1 straight away. Keeps beginners from driving backward.
    Typical weight: 0.02; drop it once the bot plays. Farmed by standing and looking."""

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return toward_ball(state, state.cars.forward)


class AlignBallGoal(Reward):
    """How well car, ball and goals lie on a line: 1 when the ball is exactly between the car and the goal it attacks, and
    the car between the ball and its own goal. Teaches to come from behind the ball. Typical weight: 0.02. Farmed by waiting
    far back.

    `offense`, `defense`: the weights of the two.
    """

    def __init__(self, offense: float = 0.5, defense: float = 0.5):
        self.offense, self.defense = offense, defense

    def bind(self, state: GameState) -> None:
        self.goals = goal_backs(state)

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        way, cars = to_ball(state), state.cars
        attack = along(way, attacked(self.goals, cars) - cars.position)
        defend = along(way, cars.position - defended(self.goals, cars))
        return (self.offense * attack + self.defense * defend) / distance_to_ball(state).clamp(min=1.0)


class ClosestToBall(Reward):
    """1 for the car that is closest to the ball of all. Makes bots contest the ball. Typical weight: 0.01. Farmed by
    following the ball without hitting it."""

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        distance = torch.where(state.cars.alive, distance_to_ball(state), torch.inf)
        return distance == distance.amin(-1, keepdim=True)


class Speed(Reward):
    """Speed of the car, 1 at full speed (2300 uu/s). For bots that stand around. Typical weight: 0.02. Farmed by racing in
    circles and by wasting boost."""

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return length(state.cars.velocity) / CAR_MAX_SPEED


class InAir(Reward):
    """1 while fewer than three wheels touch a surface. Keeps beginners from forgetting how to jump. Typical weight: 0.01.
    Farmed by hopping, and by lying on the roof: raise it only if the bot stops jumping."""

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return ~state.cars.on_ground


class SaveBoost(Reward):
    """Square root of the boost in the tank, 1 when full: the first 25 are worth as much as the other 75. For bots that burn
    all they have. Typical weight: 0.02. Farmed by never boosting: lower it when the bot becomes slow."""

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return (state.cars.boost / BOOST_MAX).sqrt()


class CollectBoost(Reward):
    """The boost that a pad added, 1 for 100. Unlike `boost_pickup` it pays little for a pad that a nearly full car takes.
    Typical weight: 1. Farmed by burning boost to collect again: set `save_boost` beside it."""

    sparse = True

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        took_pad = (events.small_pads + events.big_pads) > 0  # a respawn or a kick-off fills the tank too
        return took_pad * (state.cars.boost - previous.cars.boost).clamp(min=0.0) / BOOST_MAX
