"""Single elimination: who loses a meeting is out. The best seeds have the byes."""
from __future__ import annotations

from wavedash.league.formats.bracket import fill, places, winners_nodes
from wavedash.league.formats.meeting import Meeting, Outcomes, Place, by_stage


class SingleElimination:
    """One bracket."""

    name = "single-elimination"
    knockout = True

    def meetings(self, entrants: int, outcomes: Outcomes) -> list[Meeting]:
        return fill(winners_nodes(entrants), outcomes)

    def ranking(self, entrants: int, outcomes: Outcomes) -> list[Place]:
        meetings = self.meetings(entrants, outcomes)
        return places(meetings, entrants, 1, list(by_stage(meetings)))
