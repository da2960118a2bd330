"""The class that RLBot packages and scripts import from `rlgym_ppo.util.torch_functions`."""
from __future__ import annotations

from torch import Tensor, nn


class MapContinuousToAction(nn.Module):
    """Turns the output of a continuous policy into mean and deviation: the first half is the mean; the second, between -1 and
    1, gives a deviation between `range_min` and `range_max`."""

    def __init__(self, range_min: float = 0.1, range_max: float = 1.0) -> None:
        super().__init__()
        self.range = range_min, range_max

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, position = x.chunk(2, -1)
        least, greatest = self.range
        return mean, least + (greatest - least) * (position + 1.0) / 2.0
