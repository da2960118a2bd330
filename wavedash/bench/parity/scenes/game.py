"""Boost pads and the kick-off."""
from __future__ import annotations

import torch

from wavedash.bench.parity.scene import TICKS, Scenes, SceneStage, Target, line_up
from wavedash.rocket.constants import BOOST_MAX, PADS
from wavedash.rocket.geometry import vector

scenes = Scenes()


@scenes.add("pads", Target.EVENTS, "car", events_at=TICKS)
def _pads(stage: SceneStage) -> None:
    """Driving and jumping cars, some of them full, take small and big pads, some of which are not back yet."""
    small, big = (torch.tensor([pad[:2] for pad in PADS if pad.big == size and abs(pad.x) < 3500]) for size in (False, True))
    pad = torch.where(stage.chance(0.3).unsqueeze(-1), big[stage.number(0, len(big) - 1)],
                      small[stage.number(0, len(small) - 1)])
    yaw, speed = stage.angle(), stage.uniform(0.0, 2000.0)
    ahead = torch.stack([yaw.cos(), yaw.sin()], -1)
    place = pad - ahead * (speed * stage.uniform(-0.1, 0.5)).unsqueeze(-1) + stage.uniform(-100.0, 100.0, 2)
    place = place.clamp(torch.tensor([-3300.0, -4500.0]), torch.tensor([3300.0, 4500.0]))
    stage.drive(stage.seat(0), place, yaw, speed)
    stage.put(stage.seat(0), boost=torch.where(stage.chance(0.15), BOOST_MAX, stage.uniform(0.0, 99.0)))
    stage.ball(vector(stage.zero, 0.0, 1500.0), torch.zeros_like(stage.state.ball.velocity))  # out of reach
    longest = torch.tensor([1.0 if pad.big else 0.8 for pad in PADS])
    stage.state.pads.timer.copy_(stage.uniform(0.0, 1.0, len(PADS)) * longest * stage.chance(0.4, len(PADS)))
    stage.press(throttle=1.0)
    stage.press(start=stage.number(0, 60), ticks=10, jump=stage.chance(0.3).float())


@scenes.add("kick-off", Target.MOTION, "car", seats=(0, 1), events_at=TICKS)
def _kick_off(stage: SceneStage) -> None:
    """A kick-off with full throttle and boost and a little steering."""
    line_up(stage.state, stage.generator)
    for seat in (0, 1):
        stage.press(seat, throttle=1.0, boost=1.0, steer=stage.uniform(-0.2, 0.2))
