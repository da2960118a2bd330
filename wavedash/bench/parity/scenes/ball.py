"""The ball alone: it flies, rolls, bounces off every kind of wall and goes into a goal."""
from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from wavedash.bench.parity.scene import TICKS, Scenes, SceneStage, Target
from wavedash.rocket.constants import (
    BACK_WALL_Y,
    BALL_RADIUS,
    BALL_REST_Z,
    CORNER_LENGTH,
    GOAL_HALF_WIDTH,
    GOAL_HEIGHT,
    GRAVITY,
    SIDE_WALL_X,
)
from wavedash.rocket.geometry import vector
from wavedash.rocket.sim.constants import ARENA_CEILING_Z

RAMP_RADIUS = 350.0
"""About the radius in uu of the bend from the floor into a side wall."""
scenes = Scenes()


def _throw(stage: SceneStage, at: Tensor, along: Tensor, fastest: float = 4000.0) -> None:
    """Throw the ball so that its centre reaches `at` [E, 3] soon, moving along `along` [E, 3], if nothing is in the way."""
    velocity = normalize(along, dim=-1) * stage.uniform(300.0, fastest).unsqueeze(-1)
    stage.ball(at - velocity * stage.soon().unsqueeze(-1), velocity)
    stage.spin_ball()


def _toward(stage: SceneStage, wall: Tensor) -> Tensor:
    """Directions [E, 3] that deviate at random from that of a wall."""
    return normalize(wall, dim=-1) + stage.direction() * stage.uniform(0.0, 0.9).unsqueeze(-1)


@scenes.add("ball in air", Target.MOTION, "ball")
def _ball_in_air(stage: SceneStage) -> None:
    speed, direction = stage.uniform(0.0, 2800.0), stage.angle()
    stage.ball(stage.middle() + vector(stage.zero, 0.0, stage.uniform(800.0, 1200.0)),
               vector(speed * direction.cos(), speed * direction.sin(), stage.uniform(-300.0, 600.0)))
    stage.spin_ball()


@scenes.add("ball rolling", Target.MOTION, "ball")
def _ball_rolling(stage: SceneStage) -> None:
    speed, direction = stage.uniform(20.0, 2000.0), stage.angle()
    velocity = vector(speed * direction.cos(), speed * direction.sin(), 0.0)
    stage.ball(stage.middle() + vector(stage.zero, 0.0, BALL_REST_Z), velocity, rolling=stage.chance(0.7))


@scenes.add("ball, floor", Target.BOUNCE, "ball")
def _ball_floor(stage: SceneStage) -> None:
    _throw(stage, stage.middle() + vector(stage.zero, 0.0, BALL_RADIUS), _toward(stage, vector(stage.zero, 0.0, -1.0)))


@scenes.add("ball, side wall", Target.BOUNCE, "ball")
def _ball_side_wall(stage: SceneStage) -> None:
    side = stage.either_side()
    at = vector(side * (SIDE_WALL_X - BALL_RADIUS), stage.uniform(-2500.0, 2500.0), stage.uniform(700.0, 1300.0))
    _throw(stage, at, _toward(stage, vector(side, 0.0, 0.0)))


@scenes.add("ball, back wall", Target.BOUNCE, "ball")
def _ball_back_wall(stage: SceneStage) -> None:
    end, side = stage.either_side(), stage.either_side()
    at = vector(side * stage.uniform(1300.0, 2300.0), end * (BACK_WALL_Y - BALL_RADIUS), stage.uniform(700.0, 1300.0))
    _throw(stage, at, _toward(stage, vector(0.0, end, 0.0)))


@scenes.add("ball, ceiling", Target.BOUNCE, "ball")
def _ball_ceiling(stage: SceneStage) -> None:
    at = stage.middle() + vector(stage.zero, 0.0, ARENA_CEILING_Z - BALL_RADIUS)
    _throw(stage, at, _toward(stage, vector(stage.zero, 0.0, 1.0)))


@scenes.add("ball, ramp", Target.BOUNCE, "ball")
def _ball_ramp(stage: SceneStage) -> None:
    """The ball bounces off the bend between the floor and a side wall."""
    side, angle, depth = stage.either_side(), stage.uniform(0.3, 1.27), RAMP_RADIUS - BALL_RADIUS
    out = vector(side * angle.cos(), 0.0, -angle.sin())
    axis = vector(side * (SIDE_WALL_X - RAMP_RADIUS), stage.uniform(-2500.0, 2500.0), RAMP_RADIUS)
    _throw(stage, axis + out * depth, out + vector(0.0, stage.uniform(-0.5, 0.5), 0.0))


@scenes.add("ball, corner", Target.BOUNCE, "ball")
def _ball_corner(stage: SceneStage) -> None:
    """The ball bounces off a slanted wall or off the round edges where it meets the others."""
    side, end, along = stage.either_side(), stage.either_side(), stage.uniform(0.0, CORNER_LENGTH)
    out = normalize(vector(side, end, 0.0), dim=-1)
    wall = vector(side * (SIDE_WALL_X - along), end * (BACK_WALL_Y - CORNER_LENGTH + along), stage.uniform(500.0, 1500.0))
    _throw(stage, wall - out * BALL_RADIUS, _toward(stage, out))


@scenes.add("ball, post", Target.BOUNCE, "ball")
def _ball_post(stage: SceneStage) -> None:
    side, end = stage.either_side(), stage.either_side()
    angle, beside = stage.uniform(-0.6, 0.6), stage.uniform(-60.0, 60.0)
    along, across = vector(angle.sin(), end * angle.cos(), 0.0), vector(angle.cos(), -end * angle.sin(), 0.0)
    post = vector(side * GOAL_HALF_WIDTH, end * BACK_WALL_Y, stage.uniform(200.0, 450.0))
    _throw(stage, post + across * beside.unsqueeze(-1) - along * BALL_RADIUS, along)


@scenes.add("ball, crossbar", Target.BOUNCE, "ball")
def _ball_crossbar(stage: SceneStage) -> None:
    end, angle, beside = stage.either_side(), stage.uniform(-0.5, 0.5), stage.uniform(-60.0, 60.0)
    along, across = vector(0.0, end * angle.cos(), angle.sin()), vector(0.0, -end * angle.sin(), angle.cos())
    bar = vector(stage.uniform(-700.0, 700.0), end * BACK_WALL_Y, GOAL_HEIGHT)
    _throw(stage, bar + across * beside.unsqueeze(-1) - along * BALL_RADIUS, along + vector(stage.uniform(-0.3, 0.3), 0.0, 0.0))


@scenes.add("goal", Target.EVENTS, "ball", seats=(0, 1), events_at=TICKS)
def _goal(stage: SceneStage) -> None:
    """The ball is on its way into a goal after a touch of one of the cars."""
    end, seconds = stage.either_side(), stage.uniform(0.4, 0.9)
    into = vector(stage.uniform(-700.0, 700.0), end * (BACK_WALL_Y + 200.0), stage.uniform(120.0, 450.0))
    start = vector(stage.uniform(-1500.0, 1500.0), end * stage.uniform(3500.0, 4400.0), stage.uniform(150.0, 600.0))
    climb = vector(stage.zero, 0.0, GRAVITY * seconds / 2)
    stage.ball(start, (into - start) / seconds.unsqueeze(-1) + climb)
    state, touched = stage.state, stage.number(0, 1)
    state.game.tick.fill_(500)
    state.ball.last_touch.copy_(touched)
    for seat in (0, 1):
        when = torch.where(touched == seat, stage.number(300, 499), -1)
        stage.put(stage.seat(seat), ball_hit_tick=when, ball_hit_impulse_tick=when)
