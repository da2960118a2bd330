"""How a champion walks, on its card: how far it comes on every kind of terrain, as `wavedash eval --json` has written it."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

from pydantic import Field

from wavedash.champions.card import Card, Entry, Interval
from wavedash.errors import UserError
from wavedash.walk.evaluate.results import short, table


class Walk(Entry):
    """How it walks on one kind of terrain, over all levels."""

    robots: int
    distance: float
    """m, mean"""
    interval: Interval | None
    success: float
    """The share of robots that came to the end"""
    by_level: dict[int, float]
    """m, mean"""


class WalkingCard(Card):
    """The card of a champion that walks."""

    course: str = ""
    """What it was measured on; empty until `wavedash champion card` was run"""
    walks: dict[str, Walk] = Field(default={})
    """By kind of terrain"""

    def with_walks(self, file: Path) -> Self:
        """The same card with the results of `wavedash eval champion-... --json FILE`. UserError: it holds something else."""
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            own = Path(found["policy"]).name == self.mode
            walks = {each["terrain"]: _walk(each, found["tiles"]) for each in found["terrains"]}
            course = (f"{found['way']:g} m straight ahead at {found['speed']:g} m/s, at most {found['seconds']:.1f} s; sensors "
                      f"are {'real' if found['noisy'] else 'exact'}, robots are {'' if found['pushes'] else 'not '}pushed")
        except OSError as error:
            raise UserError(f"cannot read {file}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{file} holds no results of one walking policy: write them by wavedash eval champion-{self.mode} "
                            f"--json {file}") from error
        if not own:
            raise UserError(f"{file} holds the results of {found['policy']}, not of champion-{self.mode}")
        return self.model_copy(update={"course": course, "walks": walks})

    def __str__(self) -> str:
        lines = self.head()
        if self.walks:
            levels = sorted({level for walk in self.walks.values() for level in walk.by_level})
            head = ["terrain", "robots", "distance m", "success %", *(f"level {level}" for level in levels)]
            rows = [[short(kind), str(walk.robots), _distance(walk), f"{100 * walk.success:.0f}",
                     *(f"{walk.by_level[level]:.1f}" if level in walk.by_level else "" for level in levels)]
                    for kind, walk in self.walks.items()]
            lines += ["", self.course, *table([head, *rows], right=True)]
        return "\n".join(lines)


def _walk(found: dict[str, Any], tiles: list[dict[str, Any]]) -> Walk:
    interval = found["distance_interval"]
    return Walk(
        robots=found["robots"], distance=round(found["distance"], 2),
        interval=None if interval is None else [round(bound, 2) for bound in interval], success=round(found["success"], 4),
        by_level={tile["level"]: round(tile["distance"], 2) for tile in tiles if tile["terrain"] == found["terrain"]})


def _distance(walk: Walk) -> str:
    return f"{walk.distance:.2f}" + ("" if walk.interval is None else f" ± {(walk.interval[1] - walk.interval[0]) / 2:.2f}")
