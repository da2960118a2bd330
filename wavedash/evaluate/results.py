"""Results of matches: every game by itself, and the score of all games of two players."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from wavedash.evaluate.shares import Share
from wavedash.league.games import Game


@dataclass(frozen=True)
class Score:
    """The result of all games of a match, from the first player's side."""

    games: int
    scored: int
    conceded: int
    touches: float
    """Touches per minute of all cars of the first player (a step with contact is one touch)"""
    opponent_touches: float
    minutes: float
    """Minutes of play, all games together"""

    @property
    def goal_share(self) -> Share:
        """The share of all goals that the first player scored."""
        return Share(self.scored, self.scored + self.conceded)

    @property
    def win_rate(self) -> float:
        """The share of points: a game ends with its first goal, and one without a goal is worth half a point to both."""
        return (self.scored + self.goalless / 2) / self.games if self.games else math.nan

    @property
    def goalless(self) -> int:
        return self.games - self.scored - self.conceded


class PlayedGame(NamedTuple):
    """One game, from the first player's side."""

    side: int
    """The team of the first player: 0 is blue, 1 is orange"""
    scored: int
    conceded: int
    seconds: float


@dataclass(frozen=True)
class MatchResult:
    """All games of the first player against one of the others."""

    score: Score
    played: Sequence[PlayedGame]
    """Arena by arena; the games of one arena in the order that they were played"""
    size: int
    """Cars per team"""
    simulator: str
    seed: int
    """The seed of the match: from the same players it gives the same games again"""

    def games(self, first: str, second: str, step: int = 0, time: str | None = None) -> list[Game]:
        """The games as rows of games.csv. `first` and `second` name the players; `step`: agent steps of the run that played
        them; `time`: when they ended, by default now."""
        time = time or utc_now()
        rows = []
        for game in self.played:
            names, goals = (first, second), (game.scored, game.conceded)
            (blue, orange), (blue_goals, orange_goals) = (names[::-1], goals[::-1]) if game.side else (names, goals)
            rows.append(Game(time, step, blue, orange, self.size, blue_goals, orange_goals, round(game.seconds, 3),
                             self.simulator, self.seed))
        return rows


def utc_now() -> str:
    """The time as games.csv has it: 2026-11-16T15:04:05Z."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
