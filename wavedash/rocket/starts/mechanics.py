"""Starts in the middle of a mechanic: wall play, air dribble, flip reset, challenge, dribble."""
from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from wavedash.rocket.constants import BACK_WALL_Y, BALL_RADIUS, BALL_REST_Z, CAR_REST_Z, GRAVITY, SIDE_WALL_X
from wavedash.rocket.geometry import look, rotation, vector
from wavedash.rocket.starts.stage import Scene, Stage

NOSE = 80.0
"""uu from a car's origin to the tip of its nose, for the longest of the hitboxes"""


class Wall(Scene):
    """A car drives up a side wall toward the opponent's goal, the ball rolls up the wall before it. Teaches to read the wall,
    and to leave it with the ball."""

    def stage(self, stage: Stage) -> Tensor:
        side, steepness = stage.either_side(), stage.uniform(0.0, 1.0)
        forward = vector(0.0, steepness.cos(), steepness.sin())
        position = vector(side * (SIDE_WALL_X - CAR_REST_Z), stage.uniform(-2500.0, 2500.0), stage.uniform(350.0, 900.0))
        speed = stage.uniform(800.0, 1600.0).unsqueeze(-1)
        stage.put(
            stage.lead, position=position, rotation=look(forward, vector(-side, 0.0, 0.0)), velocity=forward * speed,
        )
        ahead = position + forward * stage.uniform(300.0, 700.0).unsqueeze(-1)
        x = side * (SIDE_WALL_X - BALL_RADIUS - stage.uniform(5.0, 150.0))
        stage.ball(vector(x, ahead[:, 1], ahead[:, 2]), forward * speed * stage.uniform(0.6, 0.95).unsqueeze(-1))
        return stage.lead


class AirDribble(Scene):
    """A car high in the air carries the ball on its nose toward the opponent's goal, with boost to go on. The flip may be left
    or not."""

    def stage(self, stage: Stage) -> Tensor:
        x, y, z = stage.uniform(-2500.0, 2500.0), stage.uniform(-2000.0, 2500.0), stage.uniform(700.0, 1400.0)
        ball = vector(x, y, z)
        yaw = torch.atan2(BACK_WALL_Y - y, -x) + stage.uniform(-0.3, 0.3)
        speed = stage.uniform(500.0, 1100.0)
        velocity = vector(speed * yaw.cos(), speed * yaw.sin(), stage.uniform(-100.0, 300.0))
        stage.ball(ball, velocity)

        turned = rotation(yaw, stage.uniform(0.3, 0.9))
        forward, up = turned[..., 0], turned[..., 2]
        gap = stage.uniform(5.0, 20.0).unsqueeze(-1)
        stage.fly(
            stage.lead,
            position=ball - forward * (NOSE + BALL_RADIUS + gap) - up * 20.0,  # the nose is 20 above the origin
            turned=turned,
            velocity=velocity + forward * stage.uniform(0.0, 50.0).unsqueeze(-1),
            since_jump=stage.uniform(0.1, 1.2),
            flip_used=stage.chance(0.5),
        )
        stage.put(stage.lead, boost=stage.uniform(50.0, 100.0))
        return stage.lead


class FlipReset(Scene):
    """A car in the air comes up under the ball, wheels toward it, its flip used: four wheels on the ball give it a new one."""

    def stage(self, stage: Stage) -> Tensor:
        x, y, z = stage.uniform(-2500.0, 2500.0), stage.uniform(-2500.0, 2000.0), stage.uniform(900.0, 1400.0)
        ball = vector(x, y, z)
        yaw = torch.atan2(BACK_WALL_Y - y, -x) + stage.uniform(-0.3, 0.3)
        speed = stage.uniform(500.0, 1100.0)
        velocity = vector(speed * yaw.cos(), speed * yaw.sin(), stage.uniform(0.0, 300.0))
        stage.ball(ball, velocity)

        to_ball = normalize(vector(stage.uniform(-0.4, 0.4), stage.uniform(-0.4, 0.4), 1.0), dim=-1)
        ahead = vector(yaw.cos(), yaw.sin(), 0.0)
        along_ball = ahead - to_ball * (ahead * to_ball).sum(-1, keepdim=True)
        stage.fly(
            stage.lead,
            position=ball - to_ball * stage.uniform(BALL_RADIUS + 40.0, BALL_RADIUS + 120.0).unsqueeze(-1),
            turned=look(along_ball, -to_ball),
            velocity=velocity + to_ball * stage.uniform(150.0, 350.0).unsqueeze(-1),
            since_jump=stage.uniform(0.3, 1.2),
            flip_used=True,
        )
        stage.put(stage.lead, boost=stage.uniform(30.0, 100.0))
        return stage.lead


class JumpChallenge(Scene):
    """Two opponents drive at a ball that both can just reach with a jump at the same moment (50-50). Without opponents, one car
    does."""

    def stage(self, stage: Stage) -> Tensor:
        meeting = torch.stack([stage.uniform(-1500.0, 1500.0), stage.uniform(-2000.0, 2000.0)], -1)
        seconds, angle = stage.uniform(0.8, 1.3), stage.uniform(0.8, 2.3)
        direction = torch.stack([angle.cos(), angle.sin()], -1)
        for who, sign, yaw in ((stage.lead, 1.0, angle), (stage.rival, -1.0, angle + torch.pi)):
            speed = stage.uniform(800.0, 1500.0)
            stage.drive(who, meeting - sign * direction * (speed * seconds).unsqueeze(-1), yaw, speed)

        height, height_there = stage.uniform(BALL_REST_Z, 500.0), stage.uniform(250.0, 400.0)
        climb = (height_there - height) / seconds + GRAVITY * seconds / 2
        drift = stage.uniform(-100.0, 100.0, 2)
        x, y = (meeting - drift * seconds.unsqueeze(-1)).unbind(-1)
        stage.ball(vector(x, y, height), vector(drift[:, 0], drift[:, 1], climb))
        return stage.lead | stage.rival


class Dribble(Scene):
    """The ball lies on the roof of a car that drives toward the opponent's half. Teaches to carry it, and to flick."""

    def stage(self, stage: Stage) -> Tensor:
        place = torch.stack([stage.uniform(-2500.0, 2500.0), stage.uniform(-3500.0, 2500.0)], -1)
        yaw, speed = torch.pi / 2 + stage.uniform(-0.6, 0.6), stage.uniform(500.0, 1200.0)
        stage.drive(stage.lead, place, yaw, speed)
        ahead = torch.stack([yaw.cos(), yaw.sin()], -1)
        x, y = (place + ahead * stage.uniform(5.0, 20.0).unsqueeze(-1)).unbind(-1)
        z = CAR_REST_Z + stage.of(stage.lead, stage.roof()) + BALL_RADIUS + 3.0
        stage.ball(vector(x, y, z), vector(speed * ahead[:, 0], speed * ahead[:, 1], 0.0))
        return stage.lead
