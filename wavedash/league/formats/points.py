"""Points: a won meeting is worth one, a drawn one half, a bye one."""
from __future__ import annotations

from collections.abc import Sequence

from wavedash.league.formats.meeting import NOBODY, Meeting, Place


def points(entrants: int, meetings: Sequence[Meeting]) -> list[float]:
    """The points of every entrant."""
    found = [0.0] * entrants
    for meeting in meetings:
        for side, entrant in enumerate((meeting.first, meeting.second)):
            if entrant is not None and entrant != NOBODY:
                found[entrant] += _of_side(meeting, side)
    return found


def buchholz(entrants: int, meetings: Sequence[Meeting]) -> list[float]:
    """The points of all opponents together: whoever met stronger ones is better. A bye counts as an opponent with as many
    points as the entrant itself."""
    have, found = points(entrants, meetings), [0.0] * entrants
    for meeting in meetings:
        for one, other in ((meeting.first, meeting.second), (meeting.second, meeting.first)):
            if one is not None and other is not None and one != NOBODY and (meeting.bye or meeting.outcome is not None):
                found[one] += have[one if other == NOBODY else other]
    return found


def ranked(entrants: int, meetings: Sequence[Meeting]) -> list[Place]:
    """Orders the entrants by points, then Buchholz, then won minus lost games, then the seed."""
    have, met, ahead = points(entrants, meetings), buchholz(entrants, meetings), [0] * entrants
    for meeting in meetings:
        if meeting.outcome is not None and meeting.first is not None and meeting.second is not None:
            gap = meeting.outcome.won - meeting.outcome.lost
            ahead[meeting.first] += gap
            ahead[meeting.second] -= gap
    order = sorted(range(entrants), key=lambda who: (-have[who], -met[who], -ahead[who], who))
    return [Place(who, str(place), f"{have[who]:g} points, Buchholz {met[who]:g}, games {ahead[who]:+d}")
            for place, who in enumerate(order, 1)]


def _of_side(meeting: Meeting, side: int) -> float:
    if meeting.bye:
        return 1.0
    if meeting.outcome is None:
        return 0.0
    return 0.5 if meeting.outcome.winner is None else float(meeting.outcome.winner == side)
