"""Starts before a goal: a chance of the own team, or of the opponents."""
from __future__ import annotations

from math import log

import torch
from torch import Tensor

from wavedash.rocket.constants import BACK_WALL_Y, BALL_REST_Z, GRAVITY
from wavedash.rocket.geometry import vector
from wavedash.rocket.starts.stage import Scene, Stage

DRAG = -log(1.0 - 0.03)
"""Rate at which drag reduces the ball's velocity, 1/s"""


def throw(start: Tensor, target: Tensor, seconds: Tensor) -> Tensor:
    """[E, 3]: the velocity with which the ball flies from `start` [E, 3] to `target` [E, 3] in `seconds` [E] without a
    bounce."""
    seconds = seconds.unsqueeze(-1)
    reach = -torch.expm1(-DRAG * seconds) / DRAG
    x, y, z = ((target - start) / reach).unbind(-1)
    fall = GRAVITY / DRAG * (seconds / reach - 1.0)
    return vector(x, y, z + fall.squeeze(-1))


def goal_mouth(stage: Stage) -> Tensor:
    """[E, 3]: a point in the leading team's own goal that the ball reaches clear of posts and crossbar."""
    return vector(stage.uniform(-600.0, 600.0), -BACK_WALL_Y, stage.uniform(150.0, 480.0))


class Shot(Scene):
    """The ball rolls or falls to a spot before the opponent's goal, and the attacker would be there at the same time at its
    current speed. The opponents are somewhere in their half."""

    def stage(self, stage: Stage) -> Tensor:
        spot = torch.stack([stage.uniform(-1000.0, 1000.0), stage.uniform(3000.0, 3900.0)], -1)
        seconds, lobbed = stage.uniform(1.0, 2.0), stage.chance(0.5)

        def before(angle: Tensor, distance: Tensor) -> Tensor:
            """[E, 2]: a place behind the spot, as seen from the goal; angle 0: straight behind."""
            return spot - torch.stack([angle.sin(), angle.cos()], -1) * distance.unsqueeze(-1)

        distance = torch.where(lobbed, stage.uniform(300.0, 1200.0), stage.uniform(300.0, 500.0)) * seconds
        x, y = before(stage.uniform(-1.4, 1.4), distance).unbind(-1)
        start = vector(x, y, torch.where(lobbed, stage.uniform(150.0, 800.0), BALL_REST_Z))
        height = torch.where(lobbed, stage.uniform(150.0, 400.0), BALL_REST_Z)
        velocity = throw(start, vector(spot[:, 0], spot[:, 1], height), seconds)
        velocity[:, 2] *= lobbed
        stage.ball(start, velocity, rolling=~lobbed)

        distance = distance + stage.uniform(300.0, 900.0)  # farther than the ball: never inside it
        angle = stage.uniform(-0.6, 0.6)
        stage.drive(stage.lead, before(angle, distance), torch.pi / 2 - angle, distance / seconds)
        return stage.lead


class Save(Scene):
    """The ball flies at the defender's goal and goes in unless the defender, who is near the goal but not in it, stops it."""

    def stage(self, stage: Stage) -> Tensor:
        start = vector(stage.uniform(-2000.0, 2000.0), stage.uniform(-2800.0, -500.0), stage.uniform(150.0, 800.0))
        target = goal_mouth(stage)
        seconds = (target - start).norm(dim=-1) / stage.uniform(1700.0, 2800.0)
        stage.ball(start, throw(start, target, seconds))

        place = torch.stack([stage.uniform(-1500.0, 1500.0), stage.uniform(-4700.0, -3500.0)], -1)
        stage.drive(stage.lead, place, stage.angle(), stage.uniform(0.0, 800.0))
        return stage.lead


class Goalie(Scene):
    """An attacker has just shot from a distance and follows the ball; the defender stands in the goal and faces it."""

    def stage(self, stage: Stage) -> Tensor:
        place = torch.stack([stage.uniform(-2000.0, 2000.0), stage.uniform(-2800.0, -300.0)], -1)
        target = goal_mouth(stage)
        x, y = (target[:, :2] - place).unbind(-1)
        yaw = torch.atan2(y, x)
        stage.drive(stage.rival, place, yaw, stage.uniform(600.0, 1400.0))

        ahead = torch.stack([yaw.cos(), yaw.sin()], -1)
        x, y = (place + ahead * stage.uniform(250.0, 500.0).unsqueeze(-1)).unbind(-1)
        start = vector(x, y, stage.uniform(100.0, 300.0))
        seconds = (target - start).norm(dim=-1) / stage.uniform(1800.0, 3000.0)
        stage.ball(start, throw(start, target, seconds))

        place = torch.stack([stage.uniform(-600.0, 600.0), stage.uniform(-5200.0, -5000.0)], -1)
        stage.drive(stage.lead, place, torch.pi / 2 + stage.uniform(-0.5, 0.5), stage.uniform(0.0, 200.0))
        return stage.lead | stage.rival
