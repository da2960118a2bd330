"""Meetings: who plays whom in a tournament, and how that ended.

A format is a function of the number of entrants and of the outcomes so far, and of nothing else. So a tournament that was
stopped goes on by reading its results. Entrants are numbers in the order of their seeds: 0 is the best.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

NOBODY = -1
"""Stands where a bracket has more places than there are entrants: whoever meets it has a bye"""


class Outcome(NamedTuple):
    """How a meeting ended, from the side of the first of the two."""

    won: int
    """Games"""
    lost: int
    winner: int | None
    """0: the first, 1: the second; None: a draw"""
    by_seed: bool = False
    """No game decided it: the better seed goes on"""


Outcomes = Mapping[str, Outcome]
"""By the name of the meeting"""


@dataclass(frozen=True)
class Meeting:
    """A place in the schedule. None: who plays there is not known yet."""

    name: str
    """`W1.3` is the third meeting of the first round"""
    stage: str
    """The round, `W1`"""
    first: int | None
    second: int | None
    outcome: Outcome | None = None

    @property
    def bye(self) -> bool:
        """Nobody has to play here."""
        return NOBODY in (self.first, self.second)

    @property
    def known(self) -> bool:
        return self.first is not None and self.second is not None

    @property
    def ready(self) -> bool:
        """It can be played now."""
        return self.known and not self.bye and self.outcome is None

    @property
    def winner(self) -> int | None:
        """Returns who goes on: an entrant, NOBODY, or None as long as that is open or if it was a draw."""
        return self._side(False)

    @property
    def loser(self) -> int | None:
        return self._side(True)

    def _side(self, loser: bool) -> int | None:
        if not self.known:
            return None
        pair = (self.first, self.second)
        if self.bye:
            return NOBODY if loser else pair[pair[0] == NOBODY]
        if self.outcome is None or self.outcome.winner is None:
            return None
        return pair[self.outcome.winner ^ loser]


class Place(NamedTuple):
    """A row of the final table."""

    entrant: int
    place: str
    """`1`, or `5-8` for those who were knocked out in the same round"""
    text: str
    """Why, for the table: points and tie-breaks, or where it was knocked out"""


class Format(Protocol):
    """How a tournament is held."""

    @property
    def name(self) -> str:
        """As users name it: `single-elimination`"""

    @property
    def knockout(self) -> bool:
        """A meeting must have a winner."""

    def meetings(self, entrants: int, outcomes: Outcomes) -> list[Meeting]:
        """All places of the schedule that can be told by now, in the order in which they are played."""

    def ranking(self, entrants: int, outcomes: Outcomes) -> list[Place]:
        """All entrants, the best first."""


def next_meeting(format: Format, entrants: int, outcomes: Outcomes) -> Meeting | None:
    """Whom to let play now; None: the tournament is over."""
    return next((meeting for meeting in format.meetings(entrants, outcomes) if meeting.ready), None)


def by_stage(meetings: Sequence[Meeting]) -> dict[str, list[Meeting]]:
    """The meetings of every round."""
    stages: dict[str, list[Meeting]] = {}
    for meeting in meetings:
        stages.setdefault(meeting.stage, []).append(meeting)
    return stages
