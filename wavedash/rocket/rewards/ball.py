"""Rewards for the position and velocity of the ball, and for how it was hit.

Typical weights are those of a step of 8 ticks (15 steps a second), beside `goal: 10`.
"""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.constants import BACK_WALL_Y, BALL_MAX_SPEED, BALL_REST_Z, CEILING_Z
from wavedash.rocket.parts import Reward
from wavedash.rocket.rewards.measures import (
    along,
    attacked,
    ball_change,
    ball_speed_to_goal,
    defended,
    goal_backs,
    length,
    touched,
    toward_goal,
)
from wavedash.rocket.state import Events, GameState


class VelocityBallToGoal(Reward):
    """Speed of the ball toward the goal that the car attacks, 1 at full speed (6000 uu/s), negative when it moves away. The
    usual way to make a bot that reaches the ball play it forward. Typical weight: 0.2. Both teams get it, whoever hit the
    ball: best with zero-sum. Farmed by slow dribbles that never shoot."""

    def bind(self, state: GameState) -> None:
        self.goals = goal_backs(state)

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return ball_speed_to_goal(self.goals, state) / BALL_MAX_SPEED


class VelocityBallToOwnGoal(Reward):
    """Minus the speed of the ball toward the car's own goal, -1 at full speed (6000 uu/s), 0 when it moves away. For bots
    that attack but do not come back. Typical weight: 0.1. Too much of it makes bots that only clear."""

    def bind(self, state: GameState) -> None:
        self.goals = goal_backs(state)

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        way = defended(self.goals, state.cars) - state.ball.position.unsqueeze(1)
        return -along(state.ball.velocity.unsqueeze(1), way).clamp(min=0.0) / BALL_MAX_SPEED


class BallToGoalDistance(Reward):
    """How near the ball is to the goal that the car attacks: 1 deep in the net, and about a third of that for every half field
    farther away (exp(-distance / 5120 uu)). Makes bots that keep the ball in the other half. Typical weight: 0.02. Farmed by
    holding the ball in a corner of that half."""

    def bind(self, state: GameState) -> None:
        self.goals = goal_backs(state)

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return torch.exp(-length(attacked(self.goals, state.cars) - state.ball.position.unsqueeze(1)) / BACK_WALL_Y)


class StrongHit(Reward):
    """A touch, weighted by how much it changes the ball's velocity: 1 for 6000 uu/s, about 0.3 for a good shot. The better
    `touch` once the bot reaches the ball: pushing pays almost nothing. Typical weight: 4. Farmed by hitting hard in any
    direction: add `basic_shot` or `velocity_ball_to_goal`."""

    sparse = True

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        change = length(ball_change(state, previous)).unsqueeze(-1)
        return touched(events) * change / BALL_MAX_SPEED


class BasicShot(Reward):
    """A touch, weighted by the speed toward the other goal that the ball gains by it: 1 for 6000 uu/s. Hits in other
    directions pay nothing. Teaches to aim. Typical weight: 5. Hard to farm: to gain speed again the ball must lose it
    first."""

    sparse = True

    def bind(self, state: GameState) -> None:
        self.goals = goal_backs(state)

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        speed = ball_speed_to_goal(self.goals, state).clamp(min=0.0)
        speed_before = toward_goal(self.goals, state, previous.ball.velocity).clamp(min=0.0)
        return touched(events) * (speed - speed_before).clamp(min=0.0) / BALL_MAX_SPEED


class JumpShot(BasicShot):
    """`basic_shot` for cars that are in the air: they jumped into the ball. For bots that shoot along the ground only. Typical
    weight: 5. Hard to farm, as `basic_shot`."""

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return super().__call__(state, previous, events) * ~state.cars.on_ground


class TouchTowardGoal(Reward):
    """A touch, weighted by the change of the ball's speed toward the goal that the car attacks: 1 for 6000 uu/s, minus that if
    it sends the ball back. Unlike `velocity_ball_to_goal` it pays only for what the car itself has changed, and clearing a
    shot pays as much as shooting. `power`: with 2, a hit that is twice as hard pays four times as much, so that pushing hardly
    pays: about 0.1 for a good shot. Typical weight: 10, with `power: 1` 3. Farmed with a high power by many soft touches back
    before a hard one forward."""

    sparse = True

    def __init__(self, power: float = 2.0):
        self.power = power

    def bind(self, state: GameState) -> None:
        self.goals = goal_backs(state)

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        change = toward_goal(self.goals, state, ball_change(state, previous)) / BALL_MAX_SPEED
        return touched(events) * change.sign() * change.abs().pow(self.power)


class TouchHeight(Reward):
    """A touch, weighted by how high the ball is: 0 on the ground, 1 at the ceiling. Leads from the ground to bouncing balls
    and aerials. Typical weight: 2. Farmed by touching high balls from the wall: `aerial_distance` pays in the air only."""

    sparse = True

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        height = (state.ball.position[:, 2:] - BALL_REST_Z) / (CEILING_Z - BALL_REST_Z)
        return touched(events) * height.clamp(min=0.0)
