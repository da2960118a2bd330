"""What differs between robots, so that a policy holds for robots that are not exactly as modelled. Ranges are those of Agarwal
et al. 2022 unless said otherwise. A wider range makes a policy more cautious, and learning slower."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.walk.limits import ordered, within
from wavedash.walk.parts import Randomization
from wavedash.walk.physics import Physics
from wavedash.walk.robot import KD, KP, STEP, SUBSTEPS
from wavedash.walk.state import RobotState

LIGHTEST = -4.0
"""kg: the least payload of the trunk, which weighs 4.7 kg"""


def between(low: float, high: float, middle: float, breadth: Tensor, generator: torch.Generator, *shape: int) -> Tensor:
    """[E, ...]: evenly drawn from a range, which shrinks to `middle` where `breadth` [E] is 0."""
    ticket = torch.rand(*breadth.shape, *shape, generator=generator, device=breadth.device)
    return middle + breadth.view(-1, *(1,) * len(shape)) * (low + (high - low) * ticket - middle)


class Payload(Randomization):
    """The trunk is heavier by `low` to `high` kg. Drawn once for every robot."""

    of_bodies = True

    def __init__(self, low: float = -1.0, high: float = 3.0) -> None:
        self.low, self.high = ordered(LIGHTEST, low=low, high=high)

    def draw(self, physics: Physics, breadth: Tensor, generator: torch.Generator) -> None:
        physics.payload.copy_(between(self.low, self.high, 0.0, breadth, generator))


class CentreOfMass(Randomization):
    """The trunk's centre of mass is moved by up to `most` m along each axis. Drawn once for every robot."""

    of_bodies = True

    def __init__(self, most: float = 0.05) -> None:
        self.most = within("most", most)

    def draw(self, physics: Physics, breadth: Tensor, generator: torch.Generator) -> None:
        physics.offset.copy_(between(-self.most, self.most, 0.0, breadth, generator, 3))


class Friction(Randomization):
    """The coefficient of friction between feet and ground is `low` to `high`."""

    def __init__(self, low: float = 0.3, high: float = 1.25) -> None:
        self.low, self.high = ordered(low=low, high=high)

    def draw(self, physics: Physics, breadth: Tensor, generator: torch.Generator) -> None:
        physics.friction.copy_(between(self.low, self.high, Physics.FRICTION, breadth, generator))


class MotorStrength(Randomization):
    """Every motor is `low` to `high` times as strong as it should be."""

    def __init__(self, low: float = 0.9, high: float = 1.1) -> None:
        self.low, self.high = ordered(low=low, high=high)

    def draw(self, physics: Physics, breadth: Tensor, generator: torch.Generator) -> None:
        physics.strength.copy_(between(self.low, self.high, 1.0, breadth, generator, 12))


class Gains(Randomization):
    """Gains of the PD control, each a range around the middle: stiffness up to `kp` N m/rad from it, damping up to `kd`."""

    def __init__(self, kp: float = 5.0, kd: float = 0.1) -> None:
        self.kp, self.kd = within("kp", kp, most=KP), within("kd", kd, most=KD)

    def draw(self, physics: Physics, breadth: Tensor, generator: torch.Generator) -> None:
        physics.kp.copy_(between(KP - self.kp, KP + self.kp, KP, breadth, generator))
        physics.kd.copy_(between(KD - self.kd, KD + self.kd, KD, breadth, generator))


class Latency(Randomization):
    """Decisions reach the motors up to `ticks` of 5 ms later, 4 being a whole step."""

    def __init__(self, ticks: int = 4) -> None:
        if ticks not in range(SUBSTEPS + 1):
            raise ValueError(f"ticks is a whole number from 0 to {SUBSTEPS}, not {ticks!r}")
        self.ticks = int(ticks)

    def draw(self, physics: Physics, breadth: Tensor, generator: torch.Generator) -> None:
        ticket = torch.rand(breadth.shape, generator=generator, device=breadth.device)
        physics.delay.copy_((breadth * ticket * (self.ticks + 1)).long().clamp(max=self.ticks))


class Pushes(Randomization):
    """About every `seconds`, the trunk is pushed: its velocity changes at once by up to `speed` m/s in any direction of the
    plane."""

    def __init__(self, speed: float = 0.3, seconds: float = 15.0) -> None:
        self.speed, self.chance = within("speed", speed), STEP / within("seconds", seconds, STEP)

    def push(self, state: RobotState, breadth: Tensor, generator: torch.Generator) -> Tensor:
        ticket = torch.rand(*state.shape, 3, generator=generator, device=state.device)
        angle, size = 2 * torch.pi * ticket[:, 0], self.speed * breadth * ticket[:, 1]
        size = size * (ticket[:, 2] < self.chance)
        return torch.stack((size * torch.cos(angle), size * torch.sin(angle), torch.zeros_like(size)), -1)
