"""Cars on the floor: driving, turning, sliding, boosting, landing and jumping."""
from __future__ import annotations

from wavedash.bench.parity.scene import Scenes, SceneStage, Target
from wavedash.rocket.constants import BOOST_MAX, CAR_REST_Z
from wavedash.rocket.geometry import rotation, vector

scenes = Scenes()


def _on_floor(stage: SceneStage, slowest: float, fastest: float) -> None:
    stage.drive(stage.seat(0), stage.middle(), stage.angle(), stage.uniform(slowest, fastest))
    stage.put(stage.seat(0), boost=stage.uniform(0.0, BOOST_MAX))


@scenes.add("drive", Target.MOTION, "car", warm=20)
def _drive(stage: SceneStage) -> None:
    """Cars drive forward and backward, brake and roll out."""
    _on_floor(stage, -1000.0, 2000.0)
    stage.press(throttle=stage.uniform(-1.0, 1.0) * stage.chance(0.8))


@scenes.add("turn", Target.MOTION, "car", warm=20)
def _turn(stage: SceneStage) -> None:
    _on_floor(stage, 200.0, 2000.0)
    stage.press(throttle=stage.uniform(0.0, 1.0), steer=stage.uniform(-1.0, 1.0))


@scenes.add("powerslide", Target.MOTION, "car", warm=20)
def _powerslide(stage: SceneStage) -> None:
    """The slide begins in the first ticks; the handbrake is let go while some cars are still sliding."""
    _on_floor(stage, 500.0, 2000.0)
    stage.press(throttle=stage.uniform(0.0, 1.0), steer=stage.uniform(0.4, 1.0) * stage.either_side())
    stage.press(start=stage.number(1, 3), ticks=stage.number(20, 120), handbrake=1.0)


@scenes.add("boost", Target.MOTION, "car", warm=5)
def _boost(stage: SceneStage) -> None:
    """Cars boost for a tap or until nothing is left."""
    _on_floor(stage, 0.0, 2250.0)
    stage.press(throttle=1.0, steer=stage.uniform(-0.3, 0.3))
    stage.press(boost=1.0, ticks=stage.number(1, 120))


@scenes.add("landing", Target.MOTION, "car")
def _landing(stage: SceneStage) -> None:
    """Cars land on their wheels after a jump or a fall."""
    fall, height = stage.uniform(50.0, 900.0), stage.uniform(2.0, 20.0)
    turned = rotation(stage.angle(), stage.uniform(-0.12, 0.12), stage.uniform(-0.12, 0.12))
    forward, speed = turned[..., 0], stage.uniform(-500.0, 1800.0).unsqueeze(-1)
    place = stage.middle() + vector(stage.zero, 0.0, CAR_REST_Z + height + fall * stage.soon())
    stage.fly(stage.seat(0), place, turned, forward * speed + vector(stage.zero, 0.0, -fall), stage.uniform(0.1, 1.5), False)
    stage.press(throttle=stage.uniform(0.0, 1.0) * stage.chance(0.7), steer=stage.uniform(-1.0, 1.0) * stage.chance(0.5))


@scenes.add("jump", Target.MOTION, "car", warm=5)
def _jump(stage: SceneStage) -> None:
    """Standing and driving cars jump, short and long; half of them land again."""
    _on_floor(stage, 0.0, 1800.0)
    stage.press(start=1, jump=1.0, ticks=stage.number(1, 40))
    stage.press(start=1, throttle=1.0)
