"""The camera of a video: it follows a robot, from the side and behind."""
from __future__ import annotations

from dataclasses import dataclass
from math import atan2, cos, radians, sin
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wavedash.walk.render.picture import View
from wavedash.walk.sensors.scan import Scan
from wavedash.walk.sensors.tiles import Tiles

STEEPEST = 80.0
"""Degrees: straight from above there is no horizon that could be level"""
LINE_POINTS = 24
"""Points of the line to the robot at which the camera looks for ground in between"""
CLEARANCE = 0.08
"""Metres that this line is above the ground"""


@dataclass(frozen=True)
class Follow:
    """How the camera follows."""

    distance: float = 1.9
    """From the robot, m"""
    angle: float = 125.0
    """Degrees from the robot's heading: 180 is behind it, 90 on its left"""
    elevation: float = 22.0
    """Degrees above the robot; more where the ground would be in the way"""
    seconds: float = 0.15
    """How long the camera takes to follow: more is calmer, and lets a fast robot run ahead"""
    turn_seconds: float = 0.8
    """How long it takes to turn with the robot; more is calmer"""
    rows: int = 360
    columns: int = 640
    field_of_view: float = 45.0


class FollowCamera:
    """Follows one robot on one tile of `tiles`; `dt` is the time between pictures, in seconds."""

    def __init__(self, tiles: Tiles, dt: float, options: Follow | None = None) -> None:
        self.options, self.tiles = options or Follow(), tiles
        self.keep, self.keep_turn = (0.0 if seconds <= 0 else float(np.exp(-dt / seconds))
                                     for seconds in (self.options.seconds, self.options.turn_seconds))
        """How much of the last view is kept"""
        self._elevations = np.linspace(min(self.options.elevation, STEEPEST), STEEPEST, 12)
        self._seen: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], float] | None = None
        """Where the robot was, its heading and the elevation, smoothed"""
        self._scan = Scan(tiles, len(self._elevations) * LINE_POINTS, torch.zeros(1, 2), threads=1)

    def cut(self) -> None:
        """Forgets the last view, at the beginning of another episode: the next one is at the robot at once."""
        self._seen = None

    def view(self, position: Tensor, orientation: Tensor, tile: int) -> View:
        """The view of the next picture: `position` [3] and `orientation` [4], w x y z, of the trunk."""
        w, x, y, z = (float(v) for v in orientation)
        yaw = atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
        place, heading = np.array([float(v) for v in position]), np.array([cos(yaw), sin(yaw)])
        if self._seen is not None:
            place = self.keep * self._seen[0] + (1 - self.keep) * place
            heading = self.keep_turn * self._seen[1] + (1 - self.keep_turn) * heading
        elevation = self._free_elevation(place, heading, tile)
        if self._seen is not None:
            elevation = max(elevation, self.keep_turn * self._seen[2] + (1 - self.keep_turn) * elevation)
        self._seen = place, heading, elevation
        eye = place + self.options.distance * self._direction(heading, elevation)
        options = self.options
        return View((float(eye[0]), float(eye[1]), float(eye[2])), (float(place[0]), float(place[1]), float(place[2])),
                    options.rows, options.columns, options.field_of_view)

    def _direction(self, heading: np.ndarray[Any, Any], elevation: float) -> np.ndarray[Any, Any]:
        """From the robot to the camera, of length 1."""
        around = atan2(heading[1], heading[0]) + radians(self.options.angle)
        up = radians(elevation)
        return np.array([cos(up) * cos(around), cos(up) * sin(around), sin(up)])

    def _free_elevation(self, place: np.ndarray[Any, Any], heading: np.ndarray[Any, Any], tile: int) -> float:
        """The least elevation from which no ground is between the camera and the robot."""
        along = np.linspace(0.15, 1.05, LINE_POINTS)[:, None] * self.options.distance
        lines = np.stack([place + along * self._direction(heading, elevation) for elevation in self._elevations])
        points = torch.from_numpy(lines.reshape(-1, 3)).to(self.tiles.device, torch.float32)
        upright = torch.tensor([1.0, 0.0, 0.0, 0.0], device=self.tiles.device).expand(len(points), 4)
        ground = self._scan(points, upright, torch.full((len(points),), tile, device=self.tiles.device))
        gap = (points[:, 2] - ground[:, 0]).view(len(self._elevations), LINE_POINTS).amin(1)
        free = np.flatnonzero((gap > CLEARANCE).cpu().numpy())
        return float(self._elevations[free[0]]) if len(free) else STEEPEST
