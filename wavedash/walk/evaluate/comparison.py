"""Several policies side by side: how far each comes on every kind of terrain."""
from __future__ import annotations

from collections.abc import Collection, Mapping

from wavedash.errors import UserError
from wavedash.walk.evaluate.results import WalkingResult, distance_text, short, table


def compare(results: Mapping[str, WalkingResult]) -> str:
    """Returns tables with a line for each kind of terrain and a column for each policy: distance in m, and its ratio to the
    first policy's. They must have walked the same course. The second table leaves out the platform, on which everybody walks:
    where one policy stops in front of the terrain and another crosses it, their distances have a ratio of the platform's
    length, and what they walked on the terrain has not. The third one also leaves out the easier half of the levels, of which
    the first are nearly closed ground."""
    first, *others = results.values()
    for other in others:
        if (other.speed, other.limit) != (first.speed, first.limit):
            raise UserError("these policies walked with different --speed or --seconds: measure them alike")
        if [(tile.terrain, tile.level) for tile in other.tiles] != [(tile.terrain, tile.level) for tile in first.tiles]:
            raise UserError("these policies walked on different terrain, because their runs have different kinds or levels: "
                            "choose what all of them shall walk on with --terrain and --levels")
    head = ["distance m", *results]
    tables = [*table([head, *_by_terrain(results.values(), 0.0),
                      ["success %", *(f"{100 * result.everything.success.value:.1f}" for result in results.values())]]),
              "", f"without the first {first.platform:g} m, which are level:",
              *table([head, *_by_terrain(results.values(), first.platform)])]
    harder = [result.harder for result in results.values()]
    if harder[0].levels != first.levels:
        tables += ["", f"the same on the harder half of the levels ({', '.join(map(str, harder[0].levels))}):",
                   *table([head, *_by_terrain(harder, first.platform)])]
    policies = [f"{name}: {result.checkpoint}; {result.conditions}" for name, result in results.items()]
    about = [*policies, *first.head(policy=False), *_other_ground(results.values())]
    return "\n".join(line.rstrip() for line in (*about, "", *tables))


def _other_ground(results: Collection[WalkingResult]) -> list[str]:
    """A line that says on which kinds of terrain the policies did not walk on the same ground, if there are any."""
    first, *others = results
    differ = dict.fromkeys(short(tile.terrain) for other in others for tile, its in zip(first.tiles, other.tiles, strict=True)
                           if tile.ground != its.ground)
    return [f"not the same ground in these runs, which give it other options: {', '.join(differ)}"] if differ else []


def _by_terrain(results: Collection[WalkingResult], without: float) -> list[list[str]]:
    """The cells of each kind of terrain: distances, `without` the first so many m."""
    rows = []
    for kind in next(iter(results)).terrains:
        walked = [result.terrains[kind].beyond(without) for result in results]
        ratios = [f" ({x.distance / walked[0].distance:.2f} x)" if walked[0].distance > 0 else "" for x in walked[1:]]
        rows.append([short(kind), *(distance_text(x) + ratio for x, ratio in zip(walked, ["", *ratios], strict=True))])
    return rows
