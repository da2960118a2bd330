"""The games of a meeting: how many are still to play, and how it ended.

A pair plays `games` games in each simulator, half of them from either side; who has won more wins. If a winner is needed and
there is none, two more games at a time (one from either side) are played, at most `extra` times. Then the better seed goes on.
"""
from __future__ import annotations

from collections.abc import Sequence

from wavedash.league.formats.meeting import Outcome
from wavedash.league.games import Game

EXTRA = 10
"""How often a drawn pair plays two more games, at most"""


def next_games(played: Sequence[Game], first: str, simulators: Sequence[str], games: int, knockout: bool,
               extra: int = EXTRA) -> tuple[str, int] | None:
    """Where to play next, and how many games; None: it is over. `first`: the name of the better seed."""
    base = games + games % 2
    counts = {simulator: sum(game.simulator == simulator for game in played) for simulator in simulators}
    repeats = max(-(-max(0, count - base) // 2) for count in counts.values())
    for simulator, count in counts.items():
        if count < base + 2 * repeats:
            return simulator, base + 2 * repeats - count
    won, lost = _score(played, first)
    return (simulators[0], 2) if knockout and won == lost and repeats < extra else None


def outcome_of(played: Sequence[Game], first: str, knockout: bool) -> Outcome:
    """How a meeting ended whose games are over. `first`: the name of the better seed."""
    won, lost = _score(played, first)
    if won == lost:
        return Outcome(won, lost, 0 if knockout else None, by_seed=knockout)
    return Outcome(won, lost, int(lost > won))


def _score(played: Sequence[Game], first: str) -> tuple[int, int]:
    ahead = [(game.blue_goals - game.orange_goals) * (1 if game.blue == first else -1) for game in played]
    return sum(gap > 0 for gap in ahead), sum(gap < 0 for gap in ahead)
