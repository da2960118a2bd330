"""Layout: where the corners of a tile lie, and how far each is from the platform on which robots begin.

A tile has three zones:

- the platform, flat at height 0, with the start of the robots in its middle. `distance` is 0 there;
- the terrain proper, `between` platform and rim;
- the rim, the last half metre, level and without pits. `distance` is `reach` there. Beyond it the ground ends, so an
  environment must end an episode before a robot comes so far. The rim lets it: a robot that stands there has crossed
  everything. Without a rim, a gap or a step at the very edge would be a trap that nobody can cross, and a scan or a camera near
  the edge would see half an obstacle.

`tile` is for training: robots walk off in any direction from the centre. `track` is for evaluation: they walk forward, and the
distance that they come is measured. The long sides of a track have no rim, else a robot could walk past the stepping stones
along it.
"""
from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wavedash.errors import UserError

RESOLUTION = 0.05
"""m between corners. legged_gym has 0.1: half of that resolves the treads of stairs and small stones better, at four times the
memory"""
RIM = 0.5
"""m: a robot of the size of A1 stands on it with all feet"""


@dataclass(frozen=True, eq=False)
class Layout:
    """The coordinates that a terrain is drawn on. They are rounded to nanometres, so that corners which two resolutions have in
    common are the same numbers."""

    x: np.ndarray
    """[Y, X] m: 0 in the centre of the tile"""
    y: np.ndarray
    """[Y, X] m"""
    distance: np.ndarray
    """[Y, X] m: from the edge of the platform; 0 on it, `reach` in the rim"""
    reach: float
    """m: the greatest distance"""
    resolution: float
    """m between corners"""
    start: tuple[float, float]
    """x, y in m: the middle of the platform"""

    @property
    def between(self) -> np.ndarray:
        """[Y, X] bool: corners of the terrain proper, neither on the platform nor in the rim."""
        return (self.distance > 0.0) & (self.distance < self.reach)

    @property
    def length(self) -> float:
        """m along x."""
        return float(self.x[0, -1] - self.x[0, 0])

    @property
    def width(self) -> float:
        """m along y."""
        return float(self.y[-1, 0] - self.y[0, 0])

    def fade(self, over: float) -> np.ndarray:
        """[Y, X]: 0 on the platform and in the rim, rising evenly to 1 over so many metres."""
        return np.clip(np.minimum(self.distance, self.reach - self.distance) / over, 0.0, 1.0)

    @classmethod
    def named(cls, name: str, resolution: float = RESOLUTION) -> Layout:
        """The layout `tile` or `track`, as a configuration names it."""
        if name not in LAYOUTS:
            near = difflib.get_close_matches(name, list(LAYOUTS), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise UserError(f"there is no layout {name!r}{hint} The layouts are: {', '.join(LAYOUTS)}")
        return LAYOUTS[name](resolution)


def tile(resolution: float = RESOLUTION, size: float = 8.0, platform: float = 2.0) -> Layout:
    """A square of `size` m (legged_gym and the CoRL 2022 paper have 8) with a platform of `platform` m in the centre. The
    distance is that of squares around the centre, so stairs become pyramids. Between platform and rim are 2.5 m, as in
    legged_gym."""
    x, y = _corners(size, size, resolution)
    return _layout(x, y, np.maximum(abs(x), abs(y)) - platform / 2, resolution, (0.0, 0.0))


def track(resolution: float = RESOLUTION, length: float = 20.0, width: float = 4.0, platform: float = 2.0) -> Layout:
    """A strip of `length` m along x and `width` m along y. The first `platform` m are the platform; the distance is that along
    x."""
    x, y = _corners(length, width, resolution)
    low = -length / 2
    return _layout(x, y, x - (low + platform), resolution, (low + platform / 2, 0.0))


LAYOUTS: dict[str, Callable[[float], Layout]] = {"tile": tile, "track": track}


def _corners(length: float, width: float, resolution: float) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.meshgrid(_axis(length, resolution), _axis(width, resolution))
    return x, y


def _axis(extent: float, resolution: float) -> np.ndarray:
    cells = round(extent / resolution) if resolution > 0 else 0
    if cells < 1 or abs(cells * resolution - extent) > 1e-6:
        raise UserError(f"a terrain of {extent:g} m cannot be divided into whole cells of {resolution!r} m: choose a "
                        "resolution that divides it, such as 0.05 or 0.1")
    return ((np.arange(cells + 1) - cells / 2) * resolution).round(9)


def _layout(x: np.ndarray, y: np.ndarray, distance: np.ndarray, resolution: float, start: tuple[float, float]) -> Layout:
    reach = round(float(distance.max()) - RIM, 9)
    if not reach > 0.0:
        raise UserError(f"no terrain fits between the platform and the rim of {RIM:g} m: enlarge the terrain or have a smaller "
                        "platform")
    return Layout(x, y, distance.clip(0.0, reach).round(9), reach, resolution, start)
