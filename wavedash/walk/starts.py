"""How episodes of walking begin."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.walk.limits import within
from wavedash.walk.parts import Start
from wavedash.walk.rotation import from_yaw
from wavedash.walk.state import RobotState


class Stand(Start):
    """Stands on the platform of the tile.

    `turn`: degrees, the robot faces in a direction up to this from +x; 180: anywhere. `shift`: m, how far from the start's
    middle. `joints`: rad, how far each joint is from the standing pose. `speed`: m/s and rad/s, how fast the trunk moves and
    turns already.
    """

    def __init__(self, turn: float = 180.0, shift: float = 0.2, joints: float = 0.1, speed: float = 0.1) -> None:
        self.turn, self.shift = within("turn", turn, most=180.0), within("shift", shift)
        self.joints, self.speed = within("joints", joints), within("speed", speed)

    def write(self, state: RobotState, generator: torch.Generator) -> None:
        def spread(width: float, *shape: int) -> Tensor:
            return width * (2.0 * torch.rand(*state.shape, *shape, generator=generator, device=state.device) - 1.0)

        state.orientation.copy_(from_yaw(spread(torch.pi / 180 * self.turn)))
        state.position[:, :2] += spread(self.shift, 2)
        state.joint_position += spread(self.joints, 12)
        state.velocity += spread(self.speed, 3)
        state.angular_velocity += spread(self.speed, 3)
