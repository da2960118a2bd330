"""Scores of the same match in one simulator or in both, as a table with a column for each, and whether the two agree."""
from __future__ import annotations

from collections.abc import Callable, Mapping

from wavedash.evaluate.results import Score

Row = Callable[[Score], str]


def goal_share(score: Score) -> str:
    if not score.goal_share.cases:
        return "no goals"
    low, high = score.goal_share.interval
    return f"{100 * score.goal_share.value:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


GAMES: dict[str, Row] = {"games": lambda score: f"{score.games}"}
GOALS: dict[str, Row] = {"goals": lambda score: f"{score.scored} : {score.conceded}"}
GOALLESS: dict[str, Row] = {"without a goal": lambda score: f"{score.goalless}"}
SHARE: dict[str, Row] = {"goal share": goal_share}
TOUCHES: dict[str, Row] = {"touches/min": lambda score: f"{score.touches:.1f} : {score.opponent_touches:.1f}"}


def table(scores: Mapping[str, Score], rows: Mapping[str, Row]) -> list[str]:
    """Lines with a column for each simulator, and with two a line that says whether they agree."""
    cells = {"": list(scores), **{name: [row(score) for score in scores.values()] for name, row in rows.items()}}
    lines = [f"{name:<16}" + "".join(f"{cell:<28}" for cell in row) for name, row in cells.items()]
    if len(scores) > 1:
        lines.append(f"{'difference':<16}{_agreement(scores)}")
    return [line.rstrip() for line in lines]


def difference(scores: Mapping[str, Score]) -> tuple[float, float, float] | None:
    """Goal share in the second simulator minus that in the first, with its 95 % interval; None if it is undefined."""
    shares = [score.goal_share for score in scores.values()]
    if len(shares) < 2 or not all(share.cases for share in shares):
        return None
    return shares[1].minus(shares[0])


def _agreement(scores: Mapping[str, Score]) -> str:
    found = difference(scores)
    if found is None:
        return "undefined: no goals were scored"
    value, low, high = (100 * x for x in found)
    noise = "within noise" if low <= 0 <= high else "more than noise"
    return f"{value:+.1f} points (95 % interval {low:+.1f} to {high:+.1f}): {noise}"
