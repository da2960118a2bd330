"""Round robin: everybody meets everybody once, in rounds in which everybody plays at most once."""
from __future__ import annotations

from wavedash.league.formats.meeting import NOBODY, Meeting, Outcomes, Place
from wavedash.league.formats.points import ranked


class RoundRobin:
    """The circle method: the first one stays, all others move on by one seat every round."""

    name = "round-robin"
    knockout = False

    def meetings(self, entrants: int, outcomes: Outcomes) -> list[Meeting]:
        circle = [*range(entrants), *([NOBODY] if entrants % 2 else [])]
        half, meetings = len(circle) // 2, []
        for number in range(1, len(circle)):
            pairs = [sorted(pair, key=lambda who: (who == NOBODY, who))
                     for pair in zip(circle[:half], reversed(circle[half:]), strict=True)]
            for place, (first, second) in enumerate(sorted(pairs), 1):
                name = f"R{number}.{place}"
                meetings.append(Meeting(name, f"R{number}", first, second, None if second == NOBODY else outcomes.get(name)))
            circle = [circle[0], circle[-1], *circle[1:-1]]
        return meetings

    def ranking(self, entrants: int, outcomes: Outcomes) -> list[Place]:
        return ranked(entrants, [meeting for meeting in self.meetings(entrants, outcomes) if not meeting.bye])
