"""Cars on side walls, bends, corners and the ceiling."""
from __future__ import annotations

from math import pi

import torch
from torch import Tensor

from wavedash.bench.parity.scene import Scenes, SceneStage, Target
from wavedash.rocket.constants import CAR_REST_Z, SIDE_WALL_X
from wavedash.rocket.geometry import look, vector
from wavedash.rocket.sim.constants import ARENA_CEILING_Z
from wavedash.rocket.state import GameState

scenes = Scenes()


def _wheels(state: GameState) -> Tensor:
    return state.cars.wheel_contact[:, 0].sum(-1)


def _climbs(state: GameState) -> Tensor:
    return (_wheels(state) >= 3) & (state.cars.up[:, 0, 2] < 0.97)


@scenes.add("wall drive", Target.MOTION, "car")
def _wall_drive(stage: SceneStage) -> None:
    """Cars drive on the flat of a side wall."""
    side, steepness = stage.either_side(), stage.angle()
    forward = vector(0.0, steepness.cos(), steepness.sin())
    stage.put(
        stage.seat(0),
        position=vector(side * (SIDE_WALL_X - CAR_REST_Z), stage.uniform(-2500.0, 2500.0), stage.uniform(600.0, 1300.0)),
        rotation=look(forward, vector(-side, 0.0, 0.0)), velocity=forward * stage.uniform(200.0, 2000.0).unsqueeze(-1),
    )
    stage.press(throttle=stage.uniform(0.0, 1.0), steer=stage.uniform(-1.0, 1.0))


@scenes.add("ramp drive", Target.MOTION, "car", warm=40, keep=_climbs)
def _ramp_drive(stage: SceneStage) -> None:
    """Cars drive on the bend from the floor into a side wall."""
    side = stage.either_side()
    yaw = torch.where(side > 0, 0.0, pi) + stage.uniform(-0.8, 0.8)
    place = vector(side * stage.uniform(3050.0, 3600.0), stage.uniform(-2500.0, 2500.0), 0.0)
    stage.drive(stage.seat(0), place, yaw, stage.uniform(700.0, 1700.0))
    stage.press(throttle=1.0, steer=stage.uniform(-0.4, 0.4))


@scenes.add("corner drive", Target.MOTION, "car", warm=90, keep=_climbs)
def _corner_drive(stage: SceneStage) -> None:
    """Cars drive on the bends and the slanted wall of a corner of the field."""
    side, end = stage.either_side(), stage.either_side()
    yaw = torch.atan2(end, side) + stage.uniform(-0.5, 0.5)
    place = vector(side * stage.uniform(2000.0, 2600.0), end * stage.uniform(3200.0, 3900.0), 0.0)
    stage.drive(stage.seat(0), place, yaw, stage.uniform(900.0, 1900.0))
    stage.press(throttle=1.0, steer=stage.uniform(-0.3, 0.3))


@scenes.add("ceiling", Target.MOTION, "car")
def _ceiling(stage: SceneStage) -> None:
    """Cars drive along the ceiling, from which they fall sooner or later."""
    yaw = stage.angle()
    forward = vector(yaw.cos(), yaw.sin(), 0.0)
    position = stage.middle() + vector(stage.zero, 0.0, ARENA_CEILING_Z - CAR_REST_Z)
    stage.put(stage.seat(0), position=position, rotation=look(forward, vector(stage.zero, 0.0, -1.0)),
              velocity=forward * stage.uniform(0.0, 2000.0).unsqueeze(-1) + vector(stage.zero, 0.0, 50.0))
    stage.press(throttle=stage.uniform(0.0, 1.0), steer=stage.uniform(-1.0, 1.0))
