"""Cars that hit the ball."""
from __future__ import annotations

from math import pi

import torch
from torch import Tensor
from torch.nn.functional import normalize

from wavedash.bench.parity.scene import NOSE, Scenes, SceneStage, Target
from wavedash.rocket.constants import BALL_RADIUS, BALL_REST_Z, SIDE_WALL_X
from wavedash.rocket.geometry import look, rotation, vector
from wavedash.rocket.starts import Dribble, FlipReset

scenes = Scenes()


def _approach(stage: SceneStage, seat: int, ball: Tensor, yaw: Tensor, beside: float, slowest: float = 300.0) -> None:
    """A car drives at a resting ball and meets it soon."""
    speed = stage.uniform(slowest, 2250.0)
    ahead, right = vector(yaw.cos(), yaw.sin(), 0.0), vector(-yaw.sin(), yaw.cos(), 0.0)
    distance = NOSE + BALL_RADIUS + speed * stage.soon()
    place = ball - ahead * distance.unsqueeze(-1) + right * stage.uniform(-beside, beside).unsqueeze(-1)
    stage.drive(stage.seat(seat), place, yaw, speed)
    stage.put(stage.seat(seat), is_supersonic=speed > 2200.0)
    stage.press(seat, throttle=1.0, boost=stage.chance(0.5).float())


@scenes.add("dribble", Target.HIT, "car", "ball")
def _dribble(stage: SceneStage) -> None:
    """The ball lies on the roof."""
    Dribble().stage(stage)
    stage.put(stage.lead, boost=0.0)
    stage.press(throttle=stage.uniform(0.0, 0.6), steer=stage.uniform(-0.1, 0.1))


@scenes.add("shot", Target.HIT, "car", "ball")
def _shot(stage: SceneStage) -> None:
    """A car on the floor hits the ball head on or with the edge of its nose."""
    ball = stage.middle() + vector(stage.zero, 0.0, BALL_REST_Z + stage.uniform(0.0, 25.0) * stage.chance(0.5))
    stage.ball(ball, stage.direction() * stage.uniform(0.0, 150.0).unsqueeze(-1) * vector(1.0 + stage.zero, 1.0, 0.0))
    _approach(stage, 0, ball, stage.angle(), 55.0)


@scenes.add("aerial hit", Target.HIT, "car", "ball")
def _aerial_hit(stage: SceneStage) -> None:
    """A flying car hits the ball with any of its sides, edges and corners."""
    ball = stage.middle() + vector(stage.zero, 0.0, stage.uniform(900.0, 1300.0))
    velocity, along, speed = stage.direction() * 500.0, stage.direction(), stage.uniform(200.0, 2000.0)
    stage.ball(ball, velocity)
    stage.spin_ball()
    distance = BALL_RADIUS + 55.0 + speed * stage.soon()
    closing = velocity + along * speed.unsqueeze(-1)
    stage.fly(stage.seat(0), ball - along * distance.unsqueeze(-1), stage.any_rotation(), closing.clamp(-1300.0, 1300.0),
              stage.uniform(0.1, 1.5), True)
    stage.put(stage.seat(0), angular_velocity=stage.direction() * stage.uniform(0.0, 5.0).unsqueeze(-1))


@scenes.add("flip reset", Target.MOTION, "car", "ball")
def _flip_reset(stage: SceneStage) -> None:
    """The wheels meet the ball in the air. Their springs push the car; nothing pushes the ball."""
    FlipReset().stage(stage)
    cars, ball = stage.state.cars, stage.state.ball
    way = normalize(ball.position.unsqueeze(1) - cars.position, dim=-1)
    stage.put(stage.lead, position=ball.position.unsqueeze(1) - way * (BALL_RADIUS + 26.0),
              velocity=ball.velocity.unsqueeze(1) + way * stage.uniform(300.0, 700.0).view(-1, 1, 1))


@scenes.add("50-50", Target.HIT, "car", "ball", seats=(0, 1))
def _fifty_fifty(stage: SceneStage) -> None:
    """Both cars drive at the ball from opposite sides."""
    ball, yaw = stage.middle() + vector(stage.zero, 0.0, BALL_REST_Z), stage.angle()
    stage.ball(ball, torch.zeros_like(ball))
    _approach(stage, 0, ball, yaw, 25.0)
    _approach(stage, 1, ball, yaw + pi + stage.uniform(-0.3, 0.3), 25.0)


@scenes.add("pinch", Target.HIT, "car", "ball")
def _pinch(stage: SceneStage) -> None:
    """A car presses the ball against a side wall, or falls on it and presses it against the floor."""
    side, on_wall, speed = stage.either_side(), stage.chance(0.5).unsqueeze(-1), stage.uniform(600.0, 2200.0)
    out = torch.where(on_wall, vector(side, 0.0, 0.0), vector(stage.zero, 0.0, -1.0))
    wall = vector(side * SIDE_WALL_X, stage.uniform(-2500.0, 2500.0), stage.uniform(700.0, 1300.0))
    ball = torch.where(on_wall, wall, stage.middle()) - out * (BALL_REST_Z + stage.uniform(0.0, 10.0)).unsqueeze(-1)
    stage.ball(ball, torch.zeros_like(ball))
    nose_first = look(vector(side, 0.0, 0.0), vector(stage.zero, stage.uniform(-0.3, 0.3), 1.0))
    wheels_first = rotation(stage.angle(), stage.uniform(-0.3, 0.3), stage.uniform(-0.3, 0.3))
    reach = torch.where(on_wall.squeeze(-1), NOSE, 25.0) + BALL_RADIUS + speed * stage.soon()
    beside = stage.direction() * stage.uniform(0.0, 25.0).unsqueeze(-1)
    turned = torch.where(on_wall.unsqueeze(-1), nose_first, wheels_first)
    place = ball - out * reach.unsqueeze(-1) + beside
    stage.fly(stage.seat(0), place, turned, out * speed.unsqueeze(-1), stage.uniform(0.1, 1.5), True)
