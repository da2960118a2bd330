"""Cars that hit each other, are demolished and come back."""
from __future__ import annotations

import torch

from wavedash.bench.parity.scene import NOSE, SIDE, TAIL, TICKS, Scenes, SceneStage, Target
from wavedash.rocket.constants import BOOST_MAX, CAR_MAX_SPEED
from wavedash.rocket.geometry import vector

scenes = Scenes()


def _ram(stage: SceneStage, slowest: float, fastest: float) -> None:
    """The car in seat 0 drives into the side or the back of the other."""
    yaw, speed, theirs = stage.angle(), stage.uniform(slowest, fastest), stage.uniform(0.0, 300.0)
    from_behind = stage.chance(0.5)
    turned = torch.where(from_behind, stage.uniform(-0.3, 0.3), stage.either_side() * stage.uniform(1.2, 1.9))
    reach = NOSE + torch.where(from_behind, TAIL, SIDE + 8.0) + 8.0 + (speed - theirs * from_behind) * stage.soon()
    place = stage.middle()
    victim = place + vector(yaw.cos(), yaw.sin(), 0.0) * reach.unsqueeze(-1)
    stage.drive(stage.seat(0), place, yaw, speed)
    stage.drive(stage.seat(1), victim, yaw + turned, theirs)
    stage.put(stage.seat(0), boost=BOOST_MAX, is_supersonic=speed >= 2200.0)
    stage.press(0, throttle=1.0, boost=(speed > 2200.0).float())


@scenes.add("bump", Target.BUMP, "car", seats=(0, 1))
def _bump(stage: SceneStage) -> None:
    _ram(stage, 500.0, 2050.0)


@scenes.add("demo", Target.EVENTS, "car", seats=(0, 1), events_at=TICKS)
def _demo(stage: SceneStage) -> None:
    _ram(stage, 2210.0, CAR_MAX_SPEED)


@scenes.add("respawn", Target.MOTION, "car", seats=(0, 1))
def _respawn(stage: SceneStage) -> None:
    """Demolished cars come back within some ticks, and drive off."""
    for seat in (0, 1):
        gone = stage.seat(seat) & stage.chance(0.7).unsqueeze(-1)
        stage.put(gone, is_demoed=True, demo_timer=stage.uniform(0.005, 0.05), on_ground=False, wheel_contact=False)
        stage.press(seat, throttle=1.0)
    stage.state.game.tick.copy_(stage.number(0, 1000))
