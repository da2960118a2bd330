"""Double elimination: who has lost twice is out.

Losers of the winners' bracket drop into the losers' bracket, whose rounds come in pairs: first its survivors meet each other,
then they meet those who drop down. These come in turns from the bottom up and from the top down, so that two who have met do
not meet again soon. In the grand final the last of the losers' bracket has to win twice: if it wins `F1`, both have lost once,
and `F2` decides (the reset).
"""
from __future__ import annotations

from wavedash.league.formats.bracket import Node, Source, fill, paired, places, rounds_of, winners_nodes
from wavedash.league.formats.meeting import Meeting, Outcomes, Place

RESET = "F2"


class DoubleElimination:
    """A winners' bracket, a losers' bracket and the grand final."""

    name = "double-elimination"
    knockout = True

    def meetings(self, entrants: int, outcomes: Outcomes) -> list[Meeting]:
        meetings = fill(_nodes(entrants), outcomes)
        final = meetings[-1]
        if final.winner is not None and final.winner == final.second:
            reset = Meeting(f"{RESET}.1", RESET, final.first, final.second, outcomes.get(f"{RESET}.1"))
            meetings.append(reset)
        return meetings

    def ranking(self, entrants: int, outcomes: Outcomes) -> list[Place]:
        losers = [f"L{number}" for number in range(1, 2 * rounds_of(entrants) - 1)]
        return places(self.meetings(entrants, outcomes), entrants, 2, [*losers, "F1", RESET])


def _nodes(entrants: int) -> list[Node]:
    """All places but the reset, every round of the losers' bracket after that of the winners' bracket that feeds it."""
    rounds, winners = rounds_of(entrants), winners_nodes(entrants)

    def dropped(number: int) -> list[Source]:
        return [Source(node.name, loses=True) for node in winners if node.stage == f"W{number}"]

    nodes = [node for node in winners if node.stage == "W1"]
    alive = dropped(1)
    for number in range(2, rounds + 1):
        nodes += (among := paired(f"L{2 * number - 3}", alive))
        nodes += [node for node in winners if node.stage == f"W{number}"]
        down = dropped(number)[:: -1 if number % 2 == 0 else 1]
        meet = [source for node, other in zip(among, down, strict=True) for source in (other, Source(node.name))]
        nodes += (against := paired(f"L{2 * number - 2}", meet))
        alive = [Source(node.name) for node in against]
    return [*nodes, Node("F1", 1, Source(winners[-1].name), alive[0])]
