"""Swiss: in every round those with about as many points meet, and nobody twice if that can be avoided.

A round is the pairing with the smallest cost among all (a perfect matching of least weight). The costs of pairs are added up
and compared in this order: meetings that there were before, and second byes; how high the bye is in the table; squared
differences of points; and, among those with equal points, how far a pair is from the best of the upper half against the best
of the lower half. A number that depends on the pair alone decides between equal pairings, so there is exactly one answer.
"""
from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import networkx  # type: ignore[import-untyped]

from wavedash.league.formats.meeting import NOBODY, Meeting, Outcomes, Place
from wavedash.league.formats.points import points, ranked

Cost = tuple[int, int, int, int, int]
DIGIT = 1 << 48
"""More than the sum of any one cost over all pairs"""


@dataclass(frozen=True)
class Swiss:
    """So many rounds; by default as many as single elimination takes."""

    rounds: int
    name: ClassVar[str] = "swiss"
    knockout: ClassVar[bool] = False

    def meetings(self, entrants: int, outcomes: Outcomes) -> list[Meeting]:
        meetings: list[Meeting] = []
        for number in range(1, self.rounds + 1):
            round_meetings = []
            for place, (first, second) in enumerate(pair(entrants, meetings), 1):
                name = f"R{number}.{place}"
                outcome = None if second == NOBODY else outcomes.get(name)
                round_meetings.append(Meeting(name, f"R{number}", first, second, outcome))
            meetings += round_meetings
            if any(meeting.ready for meeting in round_meetings):
                break
        return meetings

    def ranking(self, entrants: int, outcomes: Outcomes) -> list[Place]:
        return ranked(entrants, self.meetings(entrants, outcomes))


def pair(entrants: int, before: Sequence[Meeting]) -> list[tuple[int, int]]:
    """The next round after these: pairs with the better one first, the top of the table first, the bye last."""
    have = points(entrants, before)
    table = sorted(range(entrants), key=lambda who: (-have[who], who))
    costs = pair_costs(table, have, before)
    graph = networkx.Graph()
    for (one, other), cost in costs.items():
        weight = 0
        for digit in cost:
            weight = weight * DIGIT + digit
        graph.add_edge(one, other, weight=-weight)
    matched = networkx.max_weight_matching(graph, maxcardinality=True)
    rank = {who: place for place, who in enumerate([*table, NOBODY])}
    pairs = [(one, other) if rank[one] < rank[other] else (other, one) for one, other in matched]
    return sorted(pairs, key=lambda both: (both[1] == NOBODY, rank[both[0]]))


def pair_costs(table: Sequence[int], have: Sequence[float], before: Sequence[Meeting]) -> dict[tuple[int, int], Cost]:
    """Returns what every pair costs. `table`: the best first; `have`: points by entrant."""
    met: dict[frozenset[int | None], int] = {}
    for meeting in before:
        both = frozenset((meeting.first, meeting.second))
        met[both] = met.get(both, 0) + 1
    groups: dict[float, list[int]] = {}
    for who in table:
        groups.setdefault(have[who], []).append(who)
    costs = {}
    for i, one in enumerate(table):
        # A second meeting costs 1 and a third one 4 - so repetitions are spread, too.
        for other in table[i + 1 :]:
            group = groups[have[one]]
            if have[one] == have[other]:
                away = abs(group.index(other) - group.index(one) - len(group) // 2) ** 2
            else:  # the last of the upper group meets the first of the lower one
                away = (len(group) - 1 - group.index(one)) ** 2 + groups[have[other]].index(other) ** 2
            gap = round(2 * (have[one] - have[other])) ** 2
            costs[one, other] = (met.get(frozenset((one, other)), 0) ** 2, 0, gap, away, _number(one, other))
        if len(table) % 2:
            costs[one, NOBODY] = (met.get(frozenset((one, NOBODY)), 0) ** 2, len(table) - 1 - i, 0, 0, _number(one, NOBODY))
    return costs


def _number(one: int, other: int) -> int:
    return zlib.crc32(f"{min(one, other)} {max(one, other)}".encode())
