"""Cars in the air: second jumps, flips and their variants, air control."""
from __future__ import annotations

from math import pi

from torch import Tensor

from wavedash.bench.parity.scene import TICKS, Scenes, SceneStage, Target
from wavedash.rocket.constants import BOOST_MAX
from wavedash.rocket.geometry import rotation, vector

scenes = Scenes()


def _in_air(stage: SceneStage, tilt: float = 0.5, late: float = 1.1) -> None:
    """Put the car so high that it touches nothing for a second, up to `late` seconds after its jump; most have a flip left."""
    turned = rotation(stage.angle(), stage.uniform(-tilt, tilt), stage.uniform(-tilt, tilt))
    velocity = turned[..., 0] * stage.uniform(-800.0, 1800.0).unsqueeze(-1) + stage.direction() * 200.0
    place = stage.middle() + vector(stage.zero, 0.0, stage.uniform(900.0, 1300.0))
    stage.fly(stage.seat(0), place, turned, velocity, stage.uniform(0.0, late), False)
    stage.put(stage.seat(0), has_jumped=stage.chance(0.8), boost=stage.uniform(0.0, BOOST_MAX),
              angular_velocity=stage.direction() * stage.uniform(0.0, 1.0).unsqueeze(-1))


def _flip(stage: SceneStage, forward: Tensor | float, right: Tensor | float) -> Tensor:
    """Press jump with the stick held in a direction. Returns the tick [E] of the press."""
    start, force = stage.number(0, 3), stage.uniform(0.6, 1.0)
    stage.press(start=start, ticks=stage.number(1, 60), pitch=-forward * force, yaw=right * force)
    stage.press(start=start, ticks=stage.number(1, 12), jump=1.0)
    return start


@scenes.add("double jump", Target.MOTION, "car")
def _double_jump(stage: SceneStage) -> None:
    _in_air(stage, late=1.3)
    stage.press(start=stage.number(0, 3), ticks=stage.number(1, 12), jump=1.0)


@scenes.add("flip front", Target.MOTION, "car")
def _flip_front(stage: SceneStage) -> None:
    _in_air(stage)
    _flip(stage, 1.0, 0.0)


@scenes.add("flip back", Target.MOTION, "car")
def _flip_back(stage: SceneStage) -> None:
    _in_air(stage)
    _flip(stage, -1.0, 0.0)


@scenes.add("flip left", Target.MOTION, "car")
def _flip_left(stage: SceneStage) -> None:
    _in_air(stage)
    _flip(stage, 0.0, -1.0)


@scenes.add("flip right", Target.MOTION, "car")
def _flip_right(stage: SceneStage) -> None:
    _in_air(stage)
    _flip(stage, 0.0, 1.0)


@scenes.add("flip diagonal", Target.MOTION, "car")
def _flip_diagonal(stage: SceneStage) -> None:
    _in_air(stage)
    angle = stage.angle()
    _flip(stage, angle.cos(), angle.sin())


@scenes.add("flip cancel", Target.MOTION, "car")
def _flip_cancel(stage: SceneStage) -> None:
    """The stick is pulled against a flip as soon as it has begun."""
    _in_air(stage)
    forward = stage.either_side()
    start = _flip(stage, forward, stage.uniform(-0.5, 0.5))
    stage.press(start=start + stage.number(1, 4), pitch=forward * stage.uniform(0.5, 1.0), yaw=0.0)


@scenes.add("stall", Target.MOTION, "car")
def _stall(stage: SceneStage) -> None:
    """A flip with yaw against roll, which goes nowhere."""
    _in_air(stage)
    side, start = stage.either_side(), stage.number(0, 3)
    stage.press(start=start, ticks=20, yaw=side, roll=-side)
    stage.press(start=start, ticks=stage.number(1, 12), jump=1.0)


@scenes.add("air control", Target.MOTION, "car")
def _air_control(stage: SceneStage) -> None:
    """The stick is moved every tenth of a second, with boost and throttle now and then."""
    _in_air(stage, tilt=pi / 2)
    stage.put(stage.seat(0), has_flipped=stage.chance(0.3))
    for start in range(0, TICKS, 12):
        pitch, yaw, roll, throttle = (stage.uniform(-1.0, 1.0, 4) * stage.chance(0.7, 4)).unbind(-1)
        stage.press(start=start, ticks=12, pitch=pitch, yaw=yaw, roll=roll, throttle=throttle, boost=stage.chance(0.4).float())


@scenes.add("wavedash", Target.MOTION, "car")
def _wavedash(stage: SceneStage) -> None:
    """Cars with their nose up flip just before their back wheels touch the floor."""
    yaw, fall = stage.angle(), stage.uniform(50.0, 300.0)
    turned = rotation(yaw, stage.uniform(0.15, 0.4))
    velocity = vector(yaw.cos(), yaw.sin(), 0.0) * stage.uniform(0.0, 1400.0).unsqueeze(-1) + vector(stage.zero, 0.0, -fall)
    stage.fly(stage.seat(0), stage.middle() + vector(stage.zero, 0.0, stage.uniform(35.0, 50.0)), turned, velocity,
              stage.uniform(0.1, 0.5), False)
    _flip(stage, 1.0, stage.uniform(-0.5, 0.5))
    stage.press(throttle=1.0)
