"""Results of walking: what was measured on every tile, as a table and as JSON."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wavedash.evaluate.measure import Measured
from wavedash.evaluate.shares import Sample, Share, spread_of_sum

GRAVITY = 9.81
"""m/s^2"""
LITTLE = 0.1
"""m: of robots that came less far, energy per metre says nothing"""


@dataclass(frozen=True)
class Tile:
    """All robots on one tile: a number for each."""

    terrain: str
    level: int
    difficulty: float
    distance: list[float]
    """m forward"""
    seconds: list[float]
    """s until the robot fell, was at the end, or its time was over"""
    fell: list[bool]
    left: list[bool]
    """Those that left the track on one side"""
    success: list[bool]
    error: list[float]
    """m/s: mean of |commanded - forward speed| over its time"""
    energy: list[float]
    """J: the motors' work, |torque * angular velocity| of all joints; braking counts too, since it is not recovered"""
    ground: int = 0
    """A checksum of its heights"""


@dataclass(frozen=True)
class Walked:
    """Several tiles together, each of which counts alike."""

    tiles: Sequence[Tile]
    limit: float
    """s that a robot walks at most"""
    weight: float
    """N, of the robot"""

    @property
    def robots(self) -> int:
        return sum(len(tile.distance) for tile in self.tiles)

    @property
    def distance(self) -> float:
        """m, mean."""
        return sum(Sample(tile.distance).mean for tile in self.tiles) / len(self.tiles)

    @property
    def spread(self) -> float:
        """m: half of the 95 % interval of the mean distance, for other starts on the same tiles; NaN with one robot each."""
        return spread_of_sum([(Sample(tile.distance).error, len(tile.distance)) for tile in self.tiles]) / len(self.tiles)

    def beyond(self, first: float) -> Walked:
        """The same without the first so many m, which is 0 for a robot that did not come so far."""
        cut = [replace(tile, distance=[max(x - first, 0.0) for x in tile.distance]) for tile in self.tiles]
        return replace(self, tiles=cut)

    @property
    def success(self) -> Share:
        return Share(sum(sum(tile.success) for tile in self.tiles), self.robots)

    @property
    def fell(self) -> int:
        return sum(sum(tile.fell) for tile in self.tiles)

    @property
    def left(self) -> int:
        return sum(sum(tile.left) for tile in self.tiles)

    @property
    def time_to_fall(self) -> float:
        """s, mean; robots that do not fall count with the limit."""
        times = [seconds if fell else self.limit for tile in self.tiles
                 for seconds, fell in zip(tile.seconds, tile.fell, strict=True)]
        return sum(times) / len(times)

    @property
    def error(self) -> float:
        """m/s, mean over robots."""
        return sum(map(sum, (tile.error for tile in self.tiles))) / self.robots

    @property
    def power(self) -> float:
        """W, of all robots' time together."""
        return self._energy / sum(map(sum, (tile.seconds for tile in self.tiles)))

    @property
    def energy_per_metre(self) -> float | None:
        """J/m, of all robots' way together; None if they hardly came forward."""
        walked = sum(map(sum, (tile.distance for tile in self.tiles)))
        return self._energy / walked if walked > LITTLE * self.robots else None

    @property
    def cost_of_transport(self) -> float | None:
        """Energy / (weight * distance), which compares robots of any size; None if they hardly came forward."""
        return None if self.energy_per_metre is None else self.energy_per_metre / self.weight

    @property
    def _energy(self) -> float:
        return sum(map(sum, (tile.energy for tile in self.tiles)))

    def plain(self) -> dict[str, Any]:
        low, high = self.success.interval
        interval = None if math.isnan(self.spread) else [self.distance - self.spread, self.distance + self.spread]
        return {
            "robots": self.robots, "distance": self.distance, "distance_interval": interval,
            "success": self.success.value, "success_interval": [low, high], "fell": self.fell, "left_the_track": self.left,
            "time_to_fall": self.time_to_fall, "velocity_error": self.error, "power": self.power,
            "energy_per_metre": self.energy_per_metre, "cost_of_transport": self.cost_of_transport,
        }


@dataclass(frozen=True)
class WalkingResult(Measured):
    """How a policy walks; `str()` is what `wavedash eval` prints."""

    checkpoint: Path
    deterministic: bool
    noisy: bool
    pushes: bool
    speed: float
    way: float
    """m from the start to the end"""
    platform: float
    """m from the start to where the terrain begins"""
    limit: float
    goal: float
    """m that a robot has to come for a success"""
    weight: float
    """N, of the robot"""
    tiles: Sequence[Tile]
    terrain_seed: int
    broken: int = 0
    """Robots whose physics went wrong; they count as having come so far, without success"""

    @property
    def everything(self) -> Walked:
        return Walked(self.tiles, self.limit, self.weight)

    @property
    def terrains(self) -> dict[str, Walked]:
        """All levels of a kind of terrain together, by kind."""
        kinds = dict.fromkeys(tile.terrain for tile in self.tiles)
        return {kind: Walked([tile for tile in self.tiles if tile.terrain == kind], self.limit, self.weight) for kind in kinds}

    @property
    def levels(self) -> list[int]:
        return sorted({tile.level for tile in self.tiles})

    @property
    def harder(self) -> WalkingResult:
        """The harder half of the levels alone."""
        levels = self.levels[len(self.levels) // 2:]
        return replace(self, tiles=[tile for tile in self.tiles if tile.level in levels])

    def on(self, terrain: str, level: int) -> Walked:
        """One tile."""
        return Walked([tile for tile in self.tiles if (tile.terrain, tile.level) == (terrain, level)], self.limit, self.weight)

    def plain(self) -> dict[str, Any]:
        """Everything that was measured, for JSON: kinds of terrain, and every tile with a number for each robot."""
        tiles = [{"terrain": tile.terrain, "level": tile.level, "difficulty": tile.difficulty,
                  **Walked([tile], self.limit, self.weight).plain(),
                  "of_each_robot": {"distance": tile.distance, "seconds": tile.seconds, "fell": tile.fell, "left": tile.left,
                                    "success": tile.success, "error": tile.error, "energy": tile.energy}}
                 for tile in self.tiles]
        return {
            "policy": str(self.checkpoint), "deterministic": self.deterministic, "noisy": self.noisy, "pushes": self.pushes,
            "speed": self.speed, "way": self.way, "platform": self.platform, "seconds": self.limit, "goal": self.goal,
            "weight": self.weight, "terrain_seed": self.terrain_seed, "broken": self.broken,
            "terrains": [{"terrain": kind, **walked.plain(), "beyond_platform": walked.beyond(self.platform).distance}
                         for kind, walked in self.terrains.items()],
            "tiles": tiles,
        }

    def __str__(self) -> str:
        return "\n".join(line.rstrip() for line in (*self.head(), "", *self._summary(), *self._by_level(), *self._remarks()))

    @classmethod
    def side_by_side(cls, results: Mapping[str, WalkingResult]) -> str:
        from wavedash.walk.evaluate.comparison import compare

        return compare(results)

    @property
    def conditions(self) -> str:
        return f"sensors are {'real' if self.noisy else 'exact'}, robots are {'pushed' if self.pushes else 'not pushed'}"

    def head(self, policy: bool = True) -> list[str]:
        """Lines that say what was measured; `policy`: also whose it is, and under which conditions."""
        tiles, kinds = len(self.tiles), len(self.terrains)
        each = self.everything.robots // tiles
        own = [f"policy    {self.checkpoint} ({'deterministic' if self.deterministic else 'stochastic'})"] if policy else []
        return [*own, f"course    {self.way:g} m straight ahead at {self.speed:g} m/s, at most {self.limit:.1f} s"
                      f"{f'; {self.conditions}' if policy else ''}",
                f"robots    {each} on each of {tiles} {'tile' if tiles == 1 else 'tiles'} ({kinds} "
                f"{'kind' if kinds == 1 else 'kinds'} of terrain, {len(self.levels)} "
                f"{'level' if len(self.levels) == 1 else 'levels'})"]

    def _summary(self) -> list[str]:
        """A line for each kind of terrain."""
        head = ["terrain", "distance m", "success %", "time to fall s", "error m/s", "power W", "cost of transport"]
        walked = self.terrains | ({"all": self.everything} if len(self.terrains) > 1 else {})
        return table([head, *([short(kind), *_cells(x)] for kind, x in walked.items())])

    def _by_level(self) -> list[str]:
        """Distance and success of every kind and level."""
        if len(self.levels) == 1:
            return []
        shown: dict[str, Callable[[Walked], str]] = {
            "distance m": lambda x: f"{x.distance:.1f}", "success %": lambda x: f"{100 * x.success.value:.0f}",
            "time to fall s": lambda x: f"{x.time_to_fall:.0f}" if x.fell else "-",
        }
        lines = []
        for name, text in shown.items():
            rows = [[short(kind), *(text(self.on(kind, level)) for level in self.levels)] for kind in self.terrains]
            lines += ["", *table([[name, f"level {self.levels[0]}", *map(str, self.levels[1:])], *rows], right=True)]
        return lines

    def _remarks(self) -> list[str]:
        remarks = []
        if self.everything.left:
            remarks.append(f"{self.everything.left} of {self.everything.robots} robots left the track on one side: they count "
                           "with how far they had come, without success")
        if self.broken:
            remarks.append(f"the physics of {self.broken} robots went wrong: they count with how far they had come, without "
                           "success")
        return ["", *remarks] if remarks else []


def distance_text(walked: Walked) -> str:
    return f"{walked.distance:.2f}" + ("" if math.isnan(walked.spread) else f" ± {walked.spread:.2f}")


def short(kind: str) -> str:
    """The name of a kind of terrain without its module."""
    return kind.rpartition(":")[2]


def table(rows: Sequence[Sequence[str]], right: bool = False) -> list[str]:
    """Rows with columns of equal width; `right`: all but the first are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:>{width}}" if right and number else f"{cell:<{width}}"
                      for number, (cell, width) in enumerate(zip(row, widths, strict=True))) for row in rows]


def _cells(walked: Walked) -> list[str]:
    low, high = walked.success.interval
    cost = walked.cost_of_transport
    return [
        distance_text(walked), f"{100 * walked.success.value:.1f} ({100 * low:.1f} to {100 * high:.1f})",
        f"{walked.time_to_fall:.1f}" if walked.fell else "none fell", f"{walked.error:.3f}", f"{walked.power:.1f}",
        "-" if cost is None else f"{cost:.2f}",
    ]
