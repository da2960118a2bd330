"""When episodes of walking end: `Fallen`, `OffTile`, and `TimeOut` after so many seconds."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.tasks import endings
from wavedash.walk.limits import within
from wavedash.walk.parts import Ending, Events
from wavedash.walk.state import RobotState


class Fallen(Ending):
    """The trunk touches the ground, or is tilted by more than `tilt` degrees. Terminates. More: it may save itself more often,
    and learns about states that are lost."""

    settings = ("tilt",)
    limit: Tensor

    def __init__(self, tilt: float = 60.0) -> None:
        self.tilt = tilt
        self.register_buffer("limit", torch.zeros(()), persistent=False)
        self.write_settings()

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return (state.trunk_contact > 0) | (-state.gravity[:, 2] < self.limit)

    def write_settings(self) -> None:
        self.limit.fill_(torch.cos(torch.tensor(within("tilt", self.tilt, most=180.0) * torch.pi / 180)))


class OffTile(Ending):
    """The robot has come to within `margin` m of the edge of its tile. Truncates: it could have gone on."""

    truncates = True

    def __init__(self, margin: float = 0.4) -> None:
        self.margin = within("margin", margin)

    def bind(self, state: RobotState) -> None:
        super().bind(state)
        ground = self.context.ground
        extent = torch.tensor([ground.length, ground.width], device=state.device) / 2 - self.margin
        if not ground.is_flat and not (extent.cpu() > torch.tensor(ground.start).abs()).all():
            raise UserError(f"the ending 'off_tile' with a margin of {self.margin:g} m ends every episode at once: robots "
                            "begin nearer to the edge of their tile")
        self.extent = torch.full_like(extent, torch.inf) if ground.is_flat else extent  # a plane has no edge

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return (state.position[:, :2].abs() > self.extent).any(-1)


class TimeOut(endings.TimeOut, Ending):
    """The episode has lasted `seconds`. Truncates."""

    def __init__(self, seconds: float = 20.0) -> None:
        endings.TimeOut.__init__(self, seconds)
