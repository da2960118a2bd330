"""Members of a league: snapshots of the run and guests from elsewhere, how the policy's games against each have ended, and
what a checkpoint holds of all this."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from wavedash.league.ratings import Results, rate
from wavedash.league.strategies import Known

FEW = 10.0
"""Where fewer recent games than this were played, a win rate is closer to 0.5 than to what they say"""
SAVED_AS = "league"
"""The name of the state of a league in a checkpoint"""
POLICY = "the policy"
"""The name of the learner's own policy in `ratings`; no member is called so"""
ANCHOR = 1000.0
"""The rating of the oldest member, from which all others are measured"""

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$", max_length=200)]
"""The name of a folder in the pool, and nothing that leads out of it"""
Count = Annotated[int, Field(ge=0)]
Weight = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Three = Annotated[list[Count], Field(min_length=3, max_length=3)]


class Member(BaseModel):
    """One member. Games are counted as won, drawn and lost, from the policy's side."""

    model_config = ConfigDict(strict=True, extra="forbid")

    name: Name
    """What results.csv calls it, and the name of its policy in the pool"""
    step: Count
    """The step of the run at which it was frozen; 0 for a guest"""
    guest: bool = False
    milestone: bool = False
    """Whether it is a version that is kept for ever: it never leaves the league"""
    sha256: str | None = None
    """The checksum of its weights; None for a script"""
    total: Three = [0, 0, 0]
    unreported: Three = [0, 0, 0]
    """Games since the last summary in results.csv"""
    recent: Annotated[list[Weight], Field(min_length=3, max_length=3)] = [0.0, 0.0, 0.0]
    """Games that count the less the older they are"""

    def add(self, result: Sequence[int]) -> None:
        self.total = [a + b for a, b in zip(self.total, result, strict=True)]
        self.unreported = [a + b for a, b in zip(self.unreported, result, strict=True)]
        self.recent = [a + b for a, b in zip(self.recent, result, strict=True)]

    def fade(self, factor: float) -> None:
        """Recent games count for less, because the policy has learned since."""
        self.recent = [count * factor for count in self.recent]

    @property
    def points(self) -> float:
        """The policy's points of recent games: a win counts 1, a draw a half."""
        return self.recent[0] + self.recent[1] / 2

    @property
    def games(self) -> float:
        """Recent games."""
        return sum(self.recent)

    @property
    def win_rate(self) -> float:
        """The share of points that the policy takes from it; 0.5 where nothing is known."""
        return (self.points + FEW / 2) / (self.games + FEW)

    def is_beaten(self, above: float, games: int) -> bool:
        """Whether the policy takes more than this share of the points, over at least so many recent games."""
        return self.games >= games and self.points > above * self.games


class LeagueState(BaseModel):
    """What a checkpoint holds of a league."""

    model_config = ConfigDict(strict=True, extra="forbid")

    members: list[Member] = []
    seats: list[Name | None] = []
    """The name of the member in each slot; None: nobody that is known, whose games are not counted"""
    draws: Count = 0
    """How often it was drawn who has which slot"""
    steps: Count = 0
    """The step up to which games were counted"""
    frozen_at: Count = 0
    """The step of the last snapshot"""


def ratings(members: Sequence[Member]) -> Mapping[str, float]:
    """Ratings of the policy (under `POLICY`) and of members, by their recent games alone; the oldest member has `ANCHOR`."""
    wins, draws = np.zeros((2, 1 + len(members), 1 + len(members)))
    for number, member in enumerate(members, 1):
        won, drawn, lost = member.recent
        # A draw is half a win for both, as in `win_rate`. So are a few draws more: they connect those who have not played yet.
        wins[0, number], wins[number, 0] = (x + (drawn + FEW) / 2 for x in (won, lost))
    oldest = min(members, key=lambda member: (member.step, member.name))
    rated = rate(Results([POLICY, *(member.name for member in members)], wins, draws), {oldest.name: ANCHOR})
    return {name: rating.value for name, rating in rated.items()}


def known(members: Sequence[Member]) -> tuple[list[Known], float]:
    """Returns what a strategy is told about members, and the rating of the policy. Ratings follow from the run's own games:
    what a panel measures depends on the time that there is for it, and a resumed run must choose the same opponents."""
    rated = ratings(members)
    return [Known(member.step, rated[member.name], member.win_rate) for member in members], rated[POLICY]
