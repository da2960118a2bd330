"""Physics: what may differ between robots, in bodies, motors and contacts. Randomisation writes it, simulators read it."""
from __future__ import annotations

from typing import Self

import torch
from torch import Tensor

from wavedash.walk.robot import KD, KP


class Physics:
    """Numbers of E robots. Those of bodies are fixed when a run begins, because MuJoCo derives constants from them; the others
    may change with every episode."""

    FRICTION = 0.8

    def __init__(self, robots: int, device: torch.device | str = "cpu") -> None:
        def full(*shape: int, value: float = 0.0) -> Tensor:
            return torch.full((robots, *shape), value, device=device)

        self.payload = full()
        """[E]: kg that the trunk is heavier"""
        self.offset = full(3)
        """[E, 3]: m, by which the trunk's centre of mass is moved"""
        self.friction = full(value=self.FRICTION)
        """[E]: the coefficient of sliding friction between the feet and the ground"""
        self.strength = full(12, value=1.0)
        """[E, 12]: the factor of every motor's torque"""
        self.kp, self.kd = full(value=KP), full(value=KD)
        """[E]: gains of the PD control"""
        self.delay = torch.zeros(robots, dtype=torch.int64, device=device)
        """[E]: ticks of physics from a decision to its effect"""

    def tensors(self) -> dict[str, Tensor]:
        """All numbers by name, as a checkpoint has them."""
        return dict(vars(self))

    def copy_(self, other: Self) -> None:
        for name, x in self.tensors().items():
            x.copy_(other.tensors()[name])
