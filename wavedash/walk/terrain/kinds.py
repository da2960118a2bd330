"""The kinds of terrain that ship. Each is a small class with one method; to have one of your own, copy one, change it, and name
it by its import path.

Difficulty goes from 0 to 1. Options that come in pairs are the values at 0 and at 1, in m; in between they are interpolated.
Most are those of legged_gym (`legged_gym/utils/terrain.py`; Rudin et al., "Learning to walk in minutes", CoRL 2021), others
those of Isaac Lab and of extreme-parkour (Cheng et al., 2023).

A height map has one height at each corner: a vertical face takes one cell. A riser is a ramp over one cell, and a gap is as
wide as it should be halfway down, one cell wider on top and one narrower on the bottom. Widths that are no multiples of a cell
vary by one cell and are right on average.
"""
from __future__ import annotations

from abc import abstractmethod

import numpy as np

from wavedash.errors import UserError
from wavedash.tasks.part import Part
from wavedash.walk.terrain.layout import Layout
from wavedash.walk.terrain.noise import lattice_noise

ROUNDING = 1e-6
"""m by which a corner may be off, so that one which lies exactly on an edge is on the same side of it at all resolutions"""


class Terrain(Part):
    """A shape of the ground. It draws tiles when a task is made, and nothing later: none of the methods of a part that concern
    episodes is called."""

    @abstractmethod
    def heights(self, layout: Layout, difficulty: float, random: np.random.Generator) -> np.ndarray:
        """[Y, X] m at the corners of `layout`. It is 0 where `layout.distance` is 0: robots begin there. In the rim, where
        `layout.distance` is `layout.reach`, it should be level. Whatever is drawn comes from `random` alone, and does not
        depend on the resolution."""


class Flat(Terrain):
    """Level ground at every difficulty."""

    def heights(self, layout: Layout, difficulty: float, random: np.random.Generator) -> np.ndarray:
        return np.zeros_like(layout.x)


class Rough(Terrain):
    """Random heights between -`low` and `low` m at difficulty 0, `high` at 1 (Isaac Lab: 0.02 and 0.1; legged_gym: 0.05), at
    nodes `spacing` m apart (legged_gym: 0.2) and linear between them. Raising `low` or `high` makes it rougher; raising
    `spacing` makes it smoother, because the same heights are further apart."""

    def __init__(self, low: float = 0.02, high: float = 0.1, spacing: float = 0.2) -> None:
        self.low, self.high = _range(low=low, high=high)
        self.spacing = _positive("spacing", spacing)

    def heights(self, layout: Layout, difficulty: float, random: np.random.Generator) -> np.ndarray:
        height = _between(self.low, self.high, difficulty)
        return height * lattice_noise(layout, self.spacing, random) * layout.fade(self.spacing)


class Slope(Terrain):
    """Rises away from the platform, by `grade` m per m at difficulty 1 (legged_gym: 0.4, 22 degrees) and not at all at 0.
    Raising `grade` makes all slopes but the first steeper."""

    def __init__(self, grade: float = 0.4) -> None:
        self.grade = _positive("grade", grade)

    def heights(self, layout: Layout, difficulty: float, random: np.random.Generator) -> np.ndarray:
        return self.grade * difficulty * layout.distance


class SlopeDown(Slope):
    """Falls away from the platform, by `grade` m per m at difficulty 1; see Slope."""

    def heights(self, layout: Layout, difficulty: float, random: np.random.Generator) -> np.ndarray:
        return -super().heights(layout, difficulty, random)


class StairsUp(Terrain):
    """Stairs that rise away from the platform. Risers have `low` m at difficulty 0 and `high` at 1, treads `tread` m
    (legged_gym: 0.05, 0.23 and 0.31). Raising `low` or `high` makes steps higher; raising `tread` makes stairs flatter, and
    steps fewer."""

    def __init__(self, low: float = 0.05, high: float = 0.23, tread: float = 0.31) -> None:
        self.low, self.high = _range(low=low, high=high)
        self.tread = _positive("tread", tread)

    def heights(self, layout: Layout, difficulty: float, random: np.random.Generator) -> np.ndarray:
        steps = np.ceil((layout.distance - ROUNDING) / self.tread)
        return _between(self.low, self.high, difficulty) * steps.clip(0.0)


class StairsDown(StairsUp):
    """Stairs that fall away from the platform; see StairsUp."""

    def heights(self, layout: Layout, difficulty: float, random: np.random.Generator) -> np.ndarray:
        return -super().heights(layout, difficulty, random)


class Obstacles(Terrain):
    """Random blocks and hollows on level ground, `density` per square metre, with sides from `smallest` to `largest` m. Each is
    as high or as deep as all others at this difficulty, or half so: `low` m at 0, `high` at 1 (legged_gym: 0.05 and 0.25).
    Sides are those of extreme-parkour; legged_gym has larger ones, 1 to 2 m, 0.3 per square metre, which leave many ways free.
    Raising `low` or `high` makes steps between them higher, up to twice as high where a block stands in a hollow; raising
    `density` makes them more; raising `smallest` or `largest` covers more of the ground."""

    def __init__(self, low: float = 0.05, high: float = 0.25, density: float = 0.6, smallest: float = 0.5,
                 largest: float = 2.0) -> None:
        self.low, self.high = _range(low=low, high=high)
        self.smallest, self.largest = _range(smallest=_positive("smallest", smallest), largest=largest)
        self.density = _positive("density", density)

    def heights(self, layout: Layout, difficulty: float, random: np.random.Generator) -> np.ndarray:
        tallest = _between(self.low, self.high, difficulty)
        heights = np.zeros_like(layout.x)
        for _ in range(max(round(self.density * layout.length * layout.width), 1)):
            x, y = random.uniform(-0.5, 0.5, 2) * (layout.length, layout.width)
            length, width = random.uniform(self.smallest, self.largest, 2)
            height = tallest * random.choice([-1.0, -0.5, 0.5, 1.0])
            heights[(abs(layout.x - x) < length / 2) & (abs(layout.y - y) < width / 2)] = height
        return np.where(layout.between, heights, 0.0)


class Stones(Terrain):
    """Square stepping stones over a pit of `depth` m. At difficulty 0 they have 1.575 m with 0.05 m between them, so the ground
    is nearly closed; at 1 they have `size` m with `gap` m between them. They stand in rows across the x axis; each row is
    shifted at random. legged_gym's hardest level has 0.225 m with 0.1 m between, so about half of the ground is solid;
    extreme-parkour has 0.4 m between larger stones. With the defaults 28 % is solid, and feet that are put down blindly mostly
    miss. Raising `size` makes it easier, raising `gap` harder; raising `depth` makes no difference to a robot that falls."""

    def __init__(self, size: float = 0.225, gap: float = 0.2, depth: float = 1.0) -> None:
        self.size, self.gap, self.depth = _positive("size", size), _positive("gap", gap), _positive("depth", depth)

    def heights(self, layout: Layout, difficulty: float, random: np.random.Generator) -> np.ndarray:
        size, gap = _between(1.575, self.size, difficulty), _between(0.05, self.gap, difficulty)
        period = size + gap
        along = layout.x - layout.x[0, 0] + period * random.random() + ROUNDING
        row = (along / period).astype(np.int64)
        shift = period * random.random(int(layout.length / period) + 2)
        across = layout.y - layout.y[0, 0] + shift[row] + ROUNDING
        stone = (along % period < size) & (across % period < size)
        return np.where(layout.between & ~stone, -self.depth, 0.0)


class Gaps(Terrain):
    """Gaps around the platform, on a track across it: `low` m wide at difficulty 0, `high` at 1 (extreme-parkour: 0.1 and 0.8;
    legged_gym: 0 and 1), `depth` m deep, with `ground` m of level ground before each. A gap that does not fit before the rim is
    left out; a tile of 8 m has three at difficulty 0 and one at 1. Raising `low` or `high` makes gaps wider; raising `ground`
    makes them fewer; raising `depth` makes no difference to a robot that falls."""

    def __init__(self, low: float = 0.1, high: float = 0.8, ground: float = 0.6, depth: float = 1.0) -> None:
        self.low, self.high = _range(low=_positive("low", low), high=high)
        self.ground, self.depth = _positive("ground", ground), _positive("depth", depth)

    def heights(self, layout: Layout, difficulty: float, random: np.random.Generator) -> np.ndarray:
        period = self.ground + _between(self.low, self.high, difficulty)
        distance = layout.distance + ROUNDING
        gap = (distance % period >= self.ground) & (np.ceil(distance / period) * period <= layout.reach)
        return np.where(gap, -self.depth, 0.0)


class ShallowStones(Stones):
    """Stepping stones over a pit that is `first` m deep at difficulty 0 and deepens with its square to `depth` at 1. Where a
    miss is a fall from the first level on, robots learn to stop in front of the stones; here they stumble first, and learn
    where to step. Raising `first` makes the first levels harder."""

    def __init__(self, size: float = 0.225, gap: float = 0.2, depth: float = 1.0, first: float = 0.05) -> None:
        super().__init__(size, gap, depth)
        self.first = _positive("first", first)

    def heights(self, layout: Layout, difficulty: float, random: np.random.Generator) -> np.ndarray:
        return _between(self.first, self.depth, difficulty**2) / self.depth * super().heights(layout, difficulty, random)


class ShallowGaps(Gaps):
    """Gaps that are `first` m deep at difficulty 0 and deepen with its square to `depth` at 1, for the same reason as shallow
    stones."""

    def __init__(self, low: float = 0.1, high: float = 0.8, ground: float = 0.6, depth: float = 1.0,
                 first: float = 0.05) -> None:
        super().__init__(low, high, ground, depth)
        self.first = _positive("first", first)

    def heights(self, layout: Layout, difficulty: float, random: np.random.Generator) -> np.ndarray:
        return _between(self.first, self.depth, difficulty**2) / self.depth * super().heights(layout, difficulty, random)


def _between(easiest: float, hardest: float, difficulty: float) -> float:
    return easiest + (hardest - easiest) * difficulty


def _positive(name: str, value: float) -> float:
    if not 0.0 < value < np.inf:
        raise UserError(f"{name} must be above 0, not {value!r}")
    return value


def _range(**ends: float) -> tuple[float, float]:
    """Two options, the smaller one first."""
    (low_name, low), (high_name, high) = ends.items()
    if not 0.0 <= low <= high < np.inf:
        raise UserError(f"{low_name} must be 0 or more and {high_name} no smaller; they are {low!r} and {high!r}")
    return low, high
