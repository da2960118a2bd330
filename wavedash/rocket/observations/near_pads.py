"""The nearest boost pads to a place, looked up in a map of the field."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.constants import BACK_NET_Y, PADS

SQUARE = 100.0
"""Side of the map's squares: all places of a square have the same nearest pads, those of its middle"""
REACH = int(BACK_NET_Y / SQUARE)
SIDE = 2 * REACH + 1


class NearPads:
    """The numbers of the `count` nearest pads, nearest first. Sorting 34 distances in every step would take longer than all
    else in an observation."""

    def __init__(self, count: int, unit: float, device: torch.device):
        """`unit`: length, in uu, of 1 in the coordinates that are asked for."""
        middles = torch.arange(-REACH, REACH + 1) * SQUARE
        x, y = (torch.tensor([pad[i] for pad in PADS]) for i in (0, 1))
        distance = (middles[:, None, None] - x) ** 2 + (middles[None, :, None] - y) ** 2  # [SIDE, SIDE, 34]
        order = distance.flatten(0, 1).argsort(dim=-1, stable=True)
        self.table = order[:, :count].t().contiguous().to(device)  # [count, SIDE * SIDE]
        self.middle = torch.tensor(REACH + 0.5, device=device)
        self.squares_per_unit = unit / SQUARE

    def __call__(self, xy: Tensor) -> Tensor:
        """[count, places] of places [2, places]."""
        square = torch.add(self.middle, xy, alpha=self.squares_per_unit).clamp_(0, SIDE - 1).long()
        return self.table.index_select(1, torch.add(square[1], square[0], alpha=SIDE))
