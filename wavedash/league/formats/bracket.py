"""Brackets: meetings whose players are winners and losers of earlier ones."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wavedash.league.formats.meeting import NOBODY, Meeting, Outcomes, Place, by_stage


@dataclass(frozen=True)
class Source:
    """Where a player of a meeting comes from."""

    of: int | str
    """A seed, or the name of an earlier meeting"""
    loses: bool = False
    """The loser of that meeting instead of its winner"""


@dataclass(frozen=True)
class Node:
    """A place of the bracket."""

    stage: str
    number: int
    first: Source
    second: Source

    @property
    def name(self) -> str:
        return f"{self.stage}.{self.number}"


def rounds_of(entrants: int) -> int:
    """How many rounds it takes until one is left."""
    return (entrants - 1).bit_length()


def seed_order(rounds: int) -> list[int]:
    """Seeds from the top of the bracket to its bottom, such that the two best can only meet in the last round, the four best
    only in the last two, and in the first round the best meets the worst."""
    order = [0]
    for _ in range(rounds):
        order = [seed for best in order for seed in (best, 2 * len(order) - 1 - best)]
    return order


def winners_nodes(entrants: int) -> list[Node]:
    """The bracket in which one loss is the end: `W1.1`, ..., and the last round has one meeting."""
    rounds = rounds_of(entrants)
    sources = [Source(seed if seed < entrants else NOBODY) for seed in seed_order(rounds)]
    nodes: list[Node] = []
    for number in range(1, rounds + 1):
        new = paired(f"W{number}", sources)
        sources = [Source(node.name) for node in new]
        nodes += new
    return nodes


def paired(stage: str, sources: Sequence[Source]) -> list[Node]:
    """Neighbours meet."""
    pairs = zip(sources[::2], sources[1::2], strict=True)
    return [Node(stage, number, *pair) for number, pair in enumerate(pairs, 1)]


def fill(nodes: Sequence[Node], outcomes: Outcomes) -> list[Meeting]:
    """Finds who meets whom, as far as the outcomes tell. Every node comes after those that it depends on."""
    meetings: dict[str, Meeting] = {}

    def who(source: Source) -> int | None:
        if isinstance(source.of, int):
            return source.of
        meeting = meetings[source.of]
        return meeting.loser if source.loses else meeting.winner

    for node in nodes:
        first, second = who(node.first), who(node.second)
        filled = Meeting(node.name, node.stage, first, second)
        meetings[node.name] = Meeting(node.name, node.stage, first, second, outcomes.get(node.name) if filled.ready else None)
    return list(meetings.values())


def knocked_out(meetings: Sequence[Meeting], lives: int) -> dict[int, str]:
    """Returns, by entrant, the round in which it was knocked out: that of its loss number `lives`."""
    losses: dict[int, list[str]] = {}
    for meeting in meetings:
        if meeting.loser is not None and meeting.loser != NOBODY:
            losses.setdefault(meeting.loser, []).append(meeting.stage)
    return {entrant: stages[lives - 1] for entrant, stages in losses.items() if len(stages) >= lives}


def places(meetings: Sequence[Meeting], entrants: int, lives: int, order: Sequence[str]) -> list[Place]:
    """Ranks the entrants: who was knocked out later is better; equals share a place. `order`: rounds, the earliest first."""
    out = knocked_out(meetings, lives)
    last = len(by_stage(meetings))

    def when(entrant: int) -> int:
        return order.index(out[entrant]) if entrant in out else last

    ranked = sorted(range(entrants), key=lambda entrant: (-when(entrant), entrant))
    over = len(out) == entrants - 1
    found = []
    for entrant in ranked:
        same = [place for place, other in enumerate(ranked, 1) if when(other) == when(entrant)]
        place = f"{same[0]}" if len(same) == 1 else f"{same[0]}-{same[-1]}"
        text = f"knocked out in {out[entrant]}" if entrant in out else "champion" if over else "still in"
        found.append(Place(entrant, place, text))
    return found
