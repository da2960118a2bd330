"""Height maps as the kernels of sensors and pictures take them."""
from __future__ import annotations

from typing import Any

import torch
import warp as wp
from torch import Tensor
from torch.nn.functional import max_pool2d

from wavedash.errors import UserError
from wavedash.walk.sensors.kernels import tiles as kernels


class Tiles:
    """`heights` [K, Y, X] of K tiles in metres, `resolution` metres apart: corner (row, col) is at x = (col - (X - 1) / 2) *
    resolution and y = (row - (Y - 1) / 2) * resolution in the frame of its tile. The heights must not change afterwards."""

    def __init__(self, heights: Tensor, resolution: float) -> None:
        if heights.ndim != 3 or min(heights.shape) < 1 or min(heights.shape[1:]) < 2:
            raise UserError("heights must be [tiles, rows, columns] with two rows and columns at least, "
                            f"not {list(heights.shape)}")
        self.heights = heights.detach().to(torch.float32).contiguous()
        self.resolution, self.device = resolution, heights.device
        cells = max_pool2d(self.heights, 2, stride=1)
        block = int(kernels.BLOCK)
        self.highest = self.heights.flatten(1).amax(1)
        struct: Any = kernels.Tiles()  # Any, because its fields take Python's numbers
        struct.heights, struct.cell_highest = wp.from_torch(self.heights), wp.from_torch(cells)
        struct.block_highest = wp.from_torch(max_pool2d(cells, block, ceil_mode=True))
        struct.highest, struct.resolution = wp.from_torch(self.highest), resolution
        self.struct = struct

    @property
    def count(self) -> int:
        return len(self.heights)
