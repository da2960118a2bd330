"""Several policies side by side: how far each comes on every kind of terrain."""
from __future__ import annotations

from collections.abc import Mapping

from wavedash.errors import UserError
from wavedash.walk.evaluate.results import WalkingResult, distance_text, short, table


def compare(results: Mapping[str, WalkingResult]) -> str:
    """A table with a line for each kind of terrain and a column for each policy: distance in m, and its ratio to the first
    policy's. They must have walked the same course."""
    first, *others = results.values()
    for other in others:
        if (other.speed, other.limit) != (first.speed, first.limit):
            raise UserError("these policies walked with different --speed or --seconds: measure them alike")
        if [(tile.terrain, tile.level) for tile in other.tiles] != [(tile.terrain, tile.level) for tile in first.tiles]:
            raise UserError("these policies walked on different terrain, because their runs have different kinds or levels: "
                            "choose what all of them shall walk on with --terrain and --levels")
    rows = [["distance m", *results]]
    for kind in first.terrains:
        walked = [result.terrains[kind] for result in results.values()]
        ratios = [f" ({x.distance / walked[0].distance:.2f} x)" if walked[0].distance > 0 else "" for x in walked[1:]]
        rows.append([short(kind), *(distance_text(x) + ratio for x, ratio in zip(walked, ["", *ratios], strict=True))])
    rows.append(["success %", *(f"{100 * result.everything.success.value:.1f}" for result in results.values())])
    policies = [f"{name}: {result.checkpoint}; {result.conditions}" for name, result in results.items()]
    return "\n".join(line.rstrip() for line in (*policies, *first.head(policy=False), "", *table(rows)))
