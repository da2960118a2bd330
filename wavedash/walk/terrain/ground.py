"""Ground: the height maps of all tiles of a task, the only source of what the ground is like. Physics, scans, depth cameras and
pictures read it.

Every robot lives in a simulation of its own, with one tile in it, whose centre is the origin. A corner (row, column) of a tile
is at

    x = (column - (X - 1) / 2) * resolution,    y = (row - (Y - 1) / 2) * resolution.

MuJoCo has the same layout: `hfield_data` is [nrow, ncol] with rows along y and columns along x, ascending, and the outermost
corners at plus and minus `hfield_size`. It splits each cell into two triangles by the diagonal from (row, column) to (row + 1,
column + 1). This is so for `mujoco.mj_ray` and for contacts of MuJoCo 4.0.0 (measured with random heights: `height` agrees with
rays to the rounding of a float32, and a small sphere set onto it touches everywhere; with the other diagonal neither holds),
and in the source of MuJoCo Warp's kernels for both.

MuJoCo's compiler normalises the data of each height field by itself, so that its lowest corner is 0 and its highest 1: the
heights of two tiles would have different units. Whoever builds a model writes `hfield_data` after compiling, as

    (heights - low) / (high - low)

with `low` and `high` of all tiles, an elevation of high - low in `hfield_size`, and the geom at z = low.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from wavedash.envs.errors import EnvError
from wavedash.errors import UserError
from wavedash.seeding import stream_seed
from wavedash.tasks.lookup import Lookup, name_of
from wavedash.walk.terrain.kinds import Terrain
from wavedash.walk.terrain.layout import Layout
from wavedash.walk.terrain.noise import fractal_noise

TERRAINS = Lookup("wavedash.walk.terrain", {"terrain": (Terrain, "wavedash.walk.terrain.kinds")})


@dataclass(frozen=True, eq=False)
class Ground:
    """All tiles of a terrain: heights at the corners of square cells."""

    heights: Tensor
    """[K, Y, X] float32, m"""
    resolution: float
    """m between corners"""
    kinds: tuple[str, ...]
    """Names, as the configuration has them"""
    levels: int
    """Tiles of each kind, of increasing difficulty: tile = kind * levels + level"""
    start: tuple[float, float]
    """x, y in m at which robots begin: the middle of a flat platform of height 0"""
    shares: tuple[float, ...]
    """Weight of each kind; they need not sum to one"""
    hardest: float = 1.0
    """Difficulty of the last level"""

    @classmethod
    def named(cls, terrain: Mapping[str, Any], *, levels: int, layout: Layout, seed: int, hardest: float = 1.0) -> Self:
        """Makes a terrain as a YAML file has it: `flat: 1`, `stairs_up: {weight: 2, tread: 0.28}`, `my_module:Craters: 1`.

        Every kind has two options beside its own. `weight`: how many robots walk on it, in relation to others. `roughness`: up
        to how many m of fractal noise are added to it; raising it makes all ground uneven, 0.02 to 0.04 is what the CoRL 2022
        paper has. `levels`: raising it makes the curriculum finer and takes more memory. `hardest`: raising it makes the last
        level harder, and with it all but the first; a single level has this difficulty.

        A tile depends on its kind, its level, its difficulty and the seed alone: other kinds beside it change nothing."""
        if not terrain:
            raise UserError("a terrain needs at least one kind, such as {flat: 1}")
        if isinstance(levels, bool) or not isinstance(levels, int) or levels < 1:
            raise UserError(f"a terrain needs a whole number of levels, 1 or more, not {levels!r}")
        if not 0.0 <= hardest <= 1.0:
            raise UserError(f"the difficulty of the hardest level is from 0 to 1, not {hardest!r}")
        kinds = [_Kind.read(name, value) for name, value in terrain.items()]
        shares = tuple(kind.weight for kind in kinds)
        if not sum(shares) > 0.0:
            raise UserError(f"one kind of terrain needs a weight above 0: {', '.join(terrain)} have none")
        difficulties = [_difficulty(level, levels, hardest) for level in range(levels)]
        tiles = [kind.draw(layout, level, difficulty, seed) for kind in kinds for level, difficulty in enumerate(difficulties)]
        heights = torch.from_numpy(np.stack(tiles).astype(np.float32))  # [K, Y, X]
        return cls(heights, layout.resolution, tuple(terrain), levels, layout.start, shares, hardest)

    @property
    def length(self) -> float:
        """m along x."""
        return (self.heights.shape[2] - 1) * self.resolution

    @property
    def width(self) -> float:
        """m along y."""
        return (self.heights.shape[1] - 1) * self.resolution

    @cached_property
    def low(self) -> float:
        """m: the lowest corner of all tiles. The first call is a host sync, as are those of `high` and `is_flat`."""
        return float(self.heights.min())

    @cached_property
    def high(self) -> float:
        """m: the highest corner of all tiles."""
        return float(self.heights.max())

    @cached_property
    def is_flat(self) -> bool:
        """Whether all tiles are level at height 0, so that a plane would do."""
        return self.low == self.high == 0.0

    def to(self, device: torch.device | str) -> Self:
        """The same ground on another device."""
        return replace(self, heights=self.heights.to(device))

    def difficulty(self, level: int) -> float:
        """Difficulty of a level: 0 for the first, `hardest` for the last."""
        return _difficulty(level, self.levels, self.hardest)

    def tile(self, kind: str, level: int) -> int:
        """Number of the tile of this kind, as `kinds` names it, and level."""
        if kind not in self.kinds or not 0 <= level < self.levels:
            raise UserError(f"there is no tile {kind!r} of level {level}: this terrain has {', '.join(self.kinds)}, with "
                            f"levels 0 to {self.levels - 1}")
        return self.kinds.index(kind) * self.levels + level

    def height(self, tile: Tensor, xy: Tensor) -> Tensor:
        """[N, P] m: the ground under the points `xy` [N, P, 2] of the tiles `tile` [N] int64, on MuJoCo's triangles. Points
        beyond the border read the nearest point of it."""
        _, rows, columns = self.heights.shape
        u = (xy[..., 0] / self.resolution + (columns - 1) / 2).clamp(0, columns - 1)
        v = (xy[..., 1] / self.resolution + (rows - 1) / 2).clamp(0, rows - 1)
        # Clamped as integers: the last corner belongs to the last cell, and NaN, which has no integer, must not read elsewhere.
        column, row = u.long().clamp(0, columns - 2), v.long().clamp(0, rows - 2)
        u, v = u - column, v - row
        corners = self.heights.reshape(-1)
        first = (tile.unsqueeze(-1) * rows + row) * columns + column
        # From the first corner of a cell to the opposite one, the edges of a triangle go along x first if u >= v, else along y.
        side = torch.where(u >= v, 1, columns)
        near, middle, far = corners[first], corners[first + side], corners[first + (columns + 1)]
        return near + (middle - near) * torch.maximum(u, v) + (far - middle) * torch.minimum(u, v)


@dataclass(frozen=True)
class _Kind:
    """A kind of terrain with the options that every kind has."""

    name: str
    terrain: Terrain
    weight: float
    roughness: float

    @classmethod
    def read(cls, name: str, value: Any) -> Self:
        options = dict(value) if isinstance(value, Mapping) else {"weight": value}
        weight, roughness = options.pop("weight", 1.0), options.pop("roughness", 0.0)
        for option, number in (("weight", weight), ("roughness", roughness)):
            if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 <= number < inf:
                raise EnvError(f"terrain {name!r} needs a {option} of 0 or more, not {number!r}")
        return cls(name, TERRAINS.make("terrain", name, options), float(weight), float(roughness))

    def draw(self, layout: Layout, level: int, difficulty: float, seed: int) -> np.ndarray:
        """[Y, X]: the tile of this level. The noise has a random stream of its own, so that what is under it stays the same."""
        stream = name_of(self.terrain)
        random = np.random.default_rng(stream_seed(seed, f"terrain {stream}", level))
        heights = self._checked(self.terrain.heights(layout, difficulty, random), layout)
        if self.roughness:
            random = np.random.default_rng(stream_seed(seed, f"terrain {stream} roughness", level))
            heights = heights + self.roughness * fractal_noise(layout, random) * layout.fade(0.2)
        return heights

    def _checked(self, heights: Any, layout: Layout) -> np.ndarray:
        found = np.asarray(heights)
        if found.shape != layout.x.shape:
            problem = f"returned heights of shape {list(found.shape)}, and they are {list(layout.x.shape)}"
        elif not np.isfinite(found).all():
            problem = "returned heights that are not finite"
        elif (found[layout.distance == 0.0] != 0.0).any():
            problem = "is not 0 on the platform where robots begin, which is where layout.distance is 0"
        else:
            return found
        raise EnvError(f"terrain {self.name!r} {problem}: correct its method `heights`")


def _difficulty(level: int, levels: int, hardest: float) -> float:
    return hardest * level / (levels - 1) if levels > 1 else hardest
