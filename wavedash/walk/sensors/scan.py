"""Scandots: the heights of the ground at points around each robot, which turn with it."""
from __future__ import annotations

import torch
import warp as wp
from torch import Tensor

from wavedash.tasks.direct import DirectModule
from wavedash.walk.sensors.kernels import scan as kernels
from wavedash.walk.sensors.launch import Launch
from wavedash.walk.sensors.tiles import Tiles

LEAST = 128
"""Robots of a piece of work for a thread: 132 points of one take about a microsecond"""


def legged_gym_grid() -> Tensor:
    """[187, 2] m: legged_gym's 17 x 11 points, 0.8 m ahead and behind, 0.5 m to each side, 0.1 m apart."""
    return grid(torch.linspace(-0.8, 0.8, 17), torch.linspace(-0.5, 0.5, 11))


def parkour_grid() -> Tensor:
    """[132, 2] m: extreme-parkour's 12 x 11 points, 1.2 m ahead, 0.45 m behind, 0.75 m to each side, 0.15 m apart.

    This is the default. At 0.75 m/s a robot is 1.6 s away from its farthest point, four steps of stairs with a tread of 0.31 m,
    and the hind feet are still on it; legged_gym's grid spends half of its points on ground that was passed, and ends one step
    of stairs earlier."""
    return grid(torch.linspace(-0.45, 1.2, 12), torch.linspace(-0.75, 0.75, 11))


def dense_grid() -> Tensor:
    """[198, 2] m: 18 x 11 points 0.075 m apart, 0.9 m ahead, 0.375 m behind and to each side, where the feet will be. The
    cracks between the easiest stepping stones are 0.1 m wide and fall between the points of wider grids."""
    return grid(torch.linspace(-0.375, 0.9, 18), torch.linspace(-0.375, 0.375, 11))


def grid(x: Tensor, y: Tensor) -> Tensor:
    """[X * Y, 2] offsets, x slowest: the first Y points are the row that is farthest behind, from right to left."""
    return torch.stack(torch.meshgrid(x, y, indexing="ij"), -1).flatten(0, 1)


class Scan(DirectModule):
    """Heights below `offsets` [P, 2] of `count` robots, N: in metres, x ahead and y to the left of the robot, which turn with
    its yaw but do not tilt. They are exact on the triangles of MuJoCo's height field; outside of a tile the height is that of
    the nearest point of its border."""

    heights: Tensor
    """[N, P] m: the heights of the last call"""
    _position: Tensor
    _orientation: Tensor
    _tile: Tensor

    def __init__(self, tiles: Tiles, count: int, offsets: Tensor | None = None, threads: int | None = None) -> None:
        super().__init__()
        device = tiles.device
        offsets = parkour_grid() if offsets is None else offsets
        self.offsets = offsets.to(device, torch.float32).contiguous()
        memory = {"heights": torch.zeros(count, len(offsets), device=device), "_position": torch.zeros(count, 3, device=device),
                  "_orientation": torch.zeros(count, 4, device=device),
                  "_tile": torch.zeros(count, dtype=torch.int32, device=device)}
        for name, tensor in memory.items():
            self.register_buffer(name, tensor, persistent=False)
        span = 1 if device.type == "cuda" else len(offsets)
        self._launch = Launch(kernels.scan, count, (-(-len(offsets) // span),), (
            tiles.struct, wp.from_torch(self.offsets, dtype=wp.vec2), wp.from_torch(self._position, dtype=wp.vec3),
            wp.from_torch(self._orientation, dtype=wp.vec4), wp.from_torch(self._tile), wp.from_torch(self.heights), span),
            device, threads, least=LEAST)

    def __call__(self, position: Tensor, orientation: Tensor, tile: Tensor) -> Tensor:
        """Returns [N, P] heights in the frame of the tile, in memory that the next call overwrites. `position` [N, 3] of the
        trunk, `orientation` [N, 4] as a quaternion w x y z, `tile` [N]."""
        self._position.copy_(position)
        self._orientation.copy_(orientation)
        self._tile.copy_(tile)
        self._launch()
        return self.heights
