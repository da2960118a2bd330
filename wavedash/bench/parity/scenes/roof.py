"""Cars that lie on their roof or tumble."""
from __future__ import annotations

from math import pi

from wavedash.bench.parity.scene import Scenes, SceneStage, Target
from wavedash.rocket.geometry import rotation, vector

scenes = Scenes()


def _on_roof(stage: SceneStage, fastest: float, height: float = 0.5, tilt: float = 0.0) -> None:
    yaw, direction = stage.angle(), stage.angle()
    speed = stage.uniform(0.0, fastest)
    stage.put(
        stage.seat(0),
        position=stage.middle() + vector(stage.zero, 0.0, stage.roof()[:, 0] + height),
        rotation=rotation(yaw, stage.uniform(-tilt, tilt), pi + stage.uniform(-tilt, tilt)),
        velocity=vector(speed * direction.cos(), speed * direction.sin(), 0.0),
        angular_velocity=vector(stage.zero, 0.0, stage.uniform(-2.0, 2.0)), on_ground=False, wheel_contact=False,
        has_contact=True, contact_normal=vector(stage.zero, 0.0, 1.0), air_time=stage.uniform(0.2, 2.0),
    )


@scenes.add("roof", Target.SPREAD, "car", ticks=240)
def _roof(stage: SceneStage) -> None:
    """Cars rock, slide and turn on their roof."""
    _on_roof(stage, 500.0, height=15.0, tilt=0.2)


@scenes.add("tumble", Target.SPREAD, "car", ticks=240)
def _tumble(stage: SceneStage) -> None:
    """Spinning cars fall on any of their corners."""
    stage.fly(stage.seat(0), stage.middle() + vector(stage.zero, 0.0, stage.uniform(120.0, 250.0)), stage.any_rotation(),
              stage.direction() * stage.uniform(0.0, 900.0).unsqueeze(-1), stage.uniform(1.3, 2.0), True)
    stage.put(stage.seat(0), angular_velocity=stage.direction() * stage.uniform(0.0, 5.0).unsqueeze(-1))


@scenes.add("auto-flip", Target.MOTION, "car")
def _auto_flip(stage: SceneStage) -> None:
    """Jump turns a car over that lies on its roof."""
    _on_roof(stage, 300.0)
    stage.press(start=stage.number(2, 5), ticks=stage.number(2, 12), jump=1.0)
