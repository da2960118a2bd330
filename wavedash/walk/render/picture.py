"""frame: a picture of a tile and a robot."""
from __future__ import annotations

from dataclasses import dataclass
from math import radians, tan
from typing import Any, NamedTuple

import numpy as np
import torch
import warp as wp
from torch import Tensor

from wavedash.errors import UserError
from wavedash.walk.render.kernels import picture as kernels
from wavedash.walk.render.scene import NOTHING, Look, Shapes
from wavedash.walk.sensors.launch import Launch
from wavedash.walk.sensors.tiles import Tiles

FAR = 40.0
"""Metres along the optical axis behind which nothing is drawn"""
LEAST_RELIEF = 0.4
"""Ground with less difference in height than this, in metres, has not all colours: roughness of 2 cm is no mountain"""


@dataclass(frozen=True)
class View:
    """From where and how a picture is taken, in the frame of the tile, m."""

    eye: tuple[float, float, float]
    target: tuple[float, float, float]
    """What is in the middle of the picture"""
    rows: int = 360
    columns: int = 640
    field_of_view: float = 45.0
    """Horizontal, degrees"""

    def axes(self) -> np.ndarray:
        """[3, 3]: forward, right and down. The horizon is level."""
        forward = np.array(self.target, float) - np.array(self.eye, float)
        right = np.cross(forward, (0.0, 0.0, 1.0))
        if np.linalg.norm(right) < 1e-9:
            raise UserError(f"a picture of {self.target} cannot be taken from {self.eye}: the camera would look straight up or "
                            "down, or at itself")
        down = np.cross(forward, right)
        return np.stack([axis / np.linalg.norm(axis) for axis in (forward, right, down)])

    @property
    def pixel(self) -> float:
        """Width of a pixel at depth 1."""
        return 2 * tan(radians(self.field_of_view) / 2) / self.columns


class Picture(NamedTuple):
    """What a camera sees."""

    colours: Tensor
    """[rows, columns, 3] uint8: red, green, blue"""
    depths: Tensor
    """[rows, columns] m along the optical axis; FAR where there is nothing"""


def frame(tiles: Tiles, tile: int, view: View, shapes: Shapes = NOTHING, look: Look | None = None, samples: int = 2) -> Tensor:
    """[rows, columns, 3] uint8: a picture of one tile and of `shapes` on it. `samples`: rays along each side of a pixel; 1 is
    four times as fast as 2, with jagged edges."""
    return trace(tiles, tile, view, shapes, look, samples).colours


def trace(tiles: Tiles, tile: int, view: View, shapes: Shapes = NOTHING, look: Look | None = None, samples: int = 2) -> Picture:
    """The same with depths."""
    device = tiles.device
    colours = torch.zeros(view.rows, view.columns, 3, dtype=torch.uint8, device=device)
    depths = torch.zeros(view.rows, view.columns, device=device)
    low, high = (float(x) for x in torch.aminmax(tiles.heights[tile]))
    ends = (low, high) if high - low > LEAST_RELIEF else ((low + high - LEAST_RELIEF) / 2, (low + high + LEAST_RELIEF) / 2)
    span = view.columns if device.type == "cpu" else 1
    Launch(kernels.picture, view.rows, (-(-view.columns // span),), (
        tiles.struct, shapes.struct(wp.device_from_torch(device)), _struct(view, tile, samples), (look or Look()).struct(*ends),
        wp.from_torch(colours), wp.from_torch(depths), span), device)()
    return Picture(colours, depths)


def _struct(view: View, tile: int, samples: int) -> Any:
    struct: Any = kernels.View()  # Any, because its fields take Python's numbers
    struct.eye = wp.vec3(*view.eye)
    forward, right, down = view.axes().tolist()
    struct.forward, struct.right, struct.down = wp.vec3(*forward), wp.vec3(*right), wp.vec3(*down)
    struct.rows, struct.columns, struct.pixel = view.rows, view.columns, view.pixel
    struct.samples, struct.far, struct.tile = samples, FAR, tile
    return struct
