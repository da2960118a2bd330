"""The table of ratings that `wavedash tournament` and `wavedash ladder` print."""
from __future__ import annotations

from collections.abc import Collection, Mapping

from wavedash.league.ratings import Rating, Results


def strongest_first(ratings: Mapping[str, Rating]) -> dict[str, Rating]:
    return dict(sorted(ratings.items(), key=lambda row: -row[1].value))


def reference_line(games: int, left_out: str | None = None) -> list[str]:
    """A line that says how many reference games count too, or why none does; no line if there are none."""
    return [f"{games} reference games between players that never change count too"] if games else [left_out] if left_out else []


def rating_table(results: Results, ratings: Mapping[str, Rating], anchors: Collection[str], title: str = "") -> list[str]:
    """Lines with the ratings, in their order, and the games that they follow from."""
    wide = max(len(title), *(len(player) + 4 for player in ratings)) + 1
    lines = [f"{title:<{wide}}{'rating':>8}{'95 % interval':>18}{'games':>8}{'won':>8}{'drawn':>8}{'lost':>8}"]
    index = {player: i for i, player in enumerate(results.players)}
    for place, (player, rating) in enumerate(ratings.items(), 1):
        i = index[player]
        interval = "anchor" if player in anchors else f"{rating.low:.0f} to {rating.high:.0f}"
        counts = (results.wins[i].sum(), results.draws[i].sum(), results.wins[:, i].sum())
        lines.append(f"{place:>2}  {player:<{wide - 4}}{rating.value:>8.0f}{interval:>18}{rating.games:>8}"
                     + "".join(f"{count:>8.0f}" for count in counts))
    return lines
