"""Depth images of the ground, as a depth camera in front of the trunk sees it."""
from __future__ import annotations

from dataclasses import dataclass
from math import cos, radians, sin, tan
from typing import Any

import torch
import warp as wp
from torch import Tensor

from wavedash.errors import UserError
from wavedash.tasks.direct import DirectModule
from wavedash.walk.sensors.kernels import depth as kernels
from wavedash.walk.sensors.launch import Launch
from wavedash.walk.sensors.tiles import Tiles


@dataclass(frozen=True)
class Optics:
    """A pinhole camera with square pixels. It reads the depth along its optical axis, as real depth cameras do, not the length
    of the ray; `far` where a ray meets nothing nearer than that."""

    rows: int = 58
    columns: int = 87
    """58 x 87 is the image of Agarwal et al. 2022 and of extreme-parkour; the time of an image grows with the product"""
    field_of_view: float = 87.0
    """Horizontal, degrees, as of a RealSense D435. Wider sees more beside the robot, with larger pixels"""
    far: float = 2.0
    """Largest depth, m. A larger one sees farther ahead, and takes longer"""
    position: tuple[float, float, float] = (0.27, 0.0, 0.03)
    """In the frame of the trunk, m: extreme-parkour's, in front of the trunk of an A1"""
    pitch: float = 30.0
    """Degrees by which the camera looks down. With 30, 0.3 m above flat ground, the image reaches from 0.17 m ahead
    of the camera to the horizon; a larger pitch sees more of the ground at the front feet, and less ahead"""
    noise: float = 0.0
    """Standard deviation of Gaussian noise of each pixel that sees something, m"""
    dropout: float = 0.0
    """Share of pixels that read `far` whatever they see, as holes of a real image that were filled"""

    def __post_init__(self) -> None:
        if not 0 < self.field_of_view < 180:
            raise UserError(f"field_of_view must be between 0 and 180 degrees, not {self.field_of_view}")
        if min(self.rows, self.columns) < 1 or self.far <= 0 or self.noise < 0 or not 0 <= self.dropout <= 1:
            raise UserError(f"rows, columns and far must be positive, noise at least 0, dropout from 0 to 1: {self}")

    @property
    def pixel(self) -> float:
        """Width of a pixel at depth 1."""
        return 2 * tan(radians(self.field_of_view) / 2) / self.columns

    @property
    def noisy(self) -> bool:
        return self.noise > 0 or self.dropout > 0


class DepthImages(DirectModule):
    """Depth images of `count` robots, N, in `images` [N, rows, columns], metres; row 0 is the top, column 0 the left.

    They are equal to rays of MuJoCo on the same height field to float rounding, but for a camera inside of the ground, which
    reads 0. A tile ends at its border: a ray that leaves it meets nothing, and a camera beside it sees its wall."""

    images: Tensor
    _position: Tensor
    _orientation: Tensor
    _tile: Tensor
    _seeds: Tensor
    _robots: Tensor
    _wanted: Tensor

    def __init__(self, tiles: Tiles, count: int, optics: Optics | None = None, images: Tensor | None = None,
                 threads: int | None = None) -> None:
        """`images`: the memory to write to."""
        super().__init__()
        self.optics = optics = optics or Optics()
        device = tiles.device
        if images is None:
            images = torch.full((count, optics.rows, optics.columns), optics.far, device=device)
        memory = {"images": images, "_position": torch.zeros(count, 3, device=device),
                  "_orientation": torch.zeros(count, 4, device=device),
                  **{name: torch.zeros(count, dtype=torch.int32, device=device) for name in ("_tile", "_seeds", "_robots")},
                  "_wanted": torch.zeros(count, dtype=torch.bool, device=device)}
        for name, tensor in memory.items():
            self.register_buffer(name, tensor, persistent=False)
        self._robots.copy_(torch.arange(count))
        self._on_cpu = device.type == "cpu"
        span = optics.columns if self._on_cpu else 1
        self._launch = Launch(kernels.depth_images, count, (optics.rows, -(-optics.columns // span)), (
            tiles.struct, _struct(optics), wp.from_torch(self._robots), wp.from_torch(self._wanted),
            wp.from_torch(self._position, dtype=wp.vec3), wp.from_torch(self._orientation, dtype=wp.vec4),
            wp.from_torch(self._tile), wp.from_torch(self._seeds), wp.from_torch(self.images), span), device, threads)

    def __call__(self, position: Tensor, orientation: Tensor, tile: Tensor, wanted: Tensor | None = None,
                 seeds: Tensor | None = None) -> Tensor:
        """Writes the images of the robots that are true in `wanted` [N], by default of all; the others keep theirs. Returns
        `images`. `position` [N, 3] and `orientation` [N, 4], w x y z, of the trunk; `tile` [N]; `seeds` [N] of the noise, if
        there is any.

        On a CPU the host reads `wanted`; on a GPU there is no host sync."""
        self._position.copy_(position)
        self._orientation.copy_(orientation)
        self._tile.copy_(tile)
        if self.optics.noisy:
            if seeds is None:
                raise UserError("images with noise need seeds, or every image would have the same noise")
            self._seeds.copy_(seeds)
        if wanted is None:
            self._wanted.fill_(True)
        else:
            self._wanted.copy_(wanted)
        self._launch(self._list_wanted() if self._on_cpu else None)
        return self.images

    def _list_wanted(self) -> int:
        found = self._wanted.nonzero().flatten()
        self._robots[:len(found)] = found.int()
        return len(found)


def _struct(optics: Optics) -> Any:
    struct: Any = kernels.Optics()  # Any, because its fields take Python's numbers
    for name in ("rows", "columns", "pixel", "far", "noise", "dropout"):
        setattr(struct, name, getattr(optics, name))
    struct.position = wp.vec3(*optics.position)
    struct.cos_pitch, struct.sin_pitch = cos(radians(optics.pitch)), sin(radians(optics.pitch))
    return struct
