"""Formats of tournaments: what holds for any number of entrants and any results."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wavedash.errors import UserError
from wavedash.league.formats import make_format
from wavedash.league.formats.bracket import rounds_of
from wavedash.league.formats.meeting import NOBODY, Format, Meeting, Outcome, next_meeting
from wavedash.league.formats.points import buchholz, points
from wavedash.league.formats.swiss import pair

ENTRANTS = st.integers(2, 33)
Decide = Callable[[Meeting], Outcome]


def held(format: Format, entrants: int, decide: Decide) -> tuple[dict[str, Outcome], list[Meeting]]:
    """Plays a tournament to its end; also the meetings in the order in which they were played."""
    outcomes: dict[str, Outcome] = {}
    played = []
    while (meeting := next_meeting(format, entrants, outcomes)) is not None:
        assert meeting.name not in outcomes and meeting.first != meeting.second
        outcomes[meeting.name] = decide(meeting)
        played.append(meeting)
        assert len(played) <= entrants * entrants + 40, "it does not end"
    return outcomes, played


def by_chance(data: st.DataObject, draws: bool) -> Decide:
    random = data.draw(st.randoms(use_true_random=False))

    def decide(meeting: Meeting) -> Outcome:
        winner = random.choice([0, 1, None] if draws else [0, 1])
        return Outcome(2, 2, None) if winner is None else Outcome(3 - 2 * winner, 1 + 2 * winner, winner)
    return decide


def by_order(order: list[int]) -> Decide:
    """Whoever comes first in this order always wins."""
    def decide(meeting: Meeting) -> Outcome:
        winner = int(order.index(meeting.first) > order.index(meeting.second))
        return Outcome(4 - 4 * winner, 4 * winner, winner)
    return decide


def losses(format: Format, entrants: int, outcomes: dict[str, Outcome]) -> Counter[int]:
    found = Counter(dict.fromkeys(range(entrants), 0))
    for meeting in format.meetings(entrants, outcomes):
        if not meeting.bye:
            assert meeting.loser is not None
            found[meeting.loser] += 1
    return found


@settings(deadline=None, max_examples=25)
@given(ENTRANTS, st.data())
def test_single_elimination_knocks_everybody_out_once_but_the_champion(entrants: int, data: st.DataObject) -> None:
    format = make_format("single-elimination", entrants)
    outcomes, played = held(format, entrants, by_chance(data, draws=False))
    lost, ranking = losses(format, entrants, outcomes), format.ranking(entrants, outcomes)
    champion = ranking[0].entrant
    assert len(played) == entrants - 1 and lost == Counter({who: int(who != champion) for who in range(entrants)})
    assert sorted(row.entrant for row in ranking) == list(range(entrants)) and ranking[0].text == "champion"
    byes = [meeting for meeting in format.meetings(entrants, outcomes) if meeting.bye]
    assert {meeting.winner for meeting in byes} == set(range(2 ** rounds_of(entrants) - entrants)), "the best seeds"


@settings(deadline=None, max_examples=25)
@given(ENTRANTS, st.data())
def test_double_elimination_knocks_everybody_out_at_the_second_loss(entrants: int, data: st.DataObject) -> None:
    format = make_format("double-elimination", entrants)
    outcomes, played = held(format, entrants, by_chance(data, draws=False))
    lost, champion = losses(format, entrants, outcomes), format.ranking(entrants, outcomes)[0].entrant
    assert lost[champion] <= 1 and all(lost[who] == 2 for who in range(entrants) if who != champion)
    reset = "F2.1" in outcomes
    assert reset == (outcomes["F1.1"].winner == 1) and len(played) == 2 * (entrants - 1) + reset
    assert reset == (lost[champion] == 1 or lost.total() == 2 * (entrants - 1) + 1)
    gone: Counter[int] = Counter()
    for meeting in played:  # nobody plays on after the second loss
        assert meeting.first is not None and meeting.second is not None
        assert gone[meeting.first] < 2 and gone[meeting.second] < 2
        gone[(meeting.first, meeting.second)[1 - (outcomes[meeting.name].winner or 0)]] += 1


@settings(deadline=None, max_examples=20)
@given(ENTRANTS, st.sampled_from(["round-robin", "single-elimination", "double-elimination", "swiss"]), st.data())
def test_with_a_true_order_the_best_one_wins(entrants: int, name: str, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(entrants)))
    format = make_format(name, entrants)
    outcomes, _ = held(format, entrants, by_order(order))
    ranking = [row.entrant for row in format.ranking(entrants, outcomes)]
    assert ranking[0] == order[0]
    if name == "double-elimination":
        assert ranking[1] == order[1], "the second best loses to the best alone, so it comes back to the final"
    if name == "round-robin":
        assert ranking == order


@given(ENTRANTS)
def test_in_a_round_robin_everybody_meets_everybody_once_and_plays_once_a_round(entrants: int) -> None:
    meetings = make_format("round-robin", entrants).meetings(entrants, {})
    pairs = [tuple(sorted((meeting.first, meeting.second))) for meeting in meetings if not meeting.bye]
    assert sorted(pairs) == list(combinations(range(entrants), 2))
    stages = Counter((meeting.stage, who) for meeting in meetings for who in (meeting.first, meeting.second))
    assert set(stages.values()) == {1} and len({stage for stage, _ in stages}) == entrants - 1 + entrants % 2


# Swiss


def pairings(players: list[int]) -> list[list[tuple[int, int]]]:
    """All ways to pair an even number of players."""
    if not players:
        return [[]]
    first, rest = players[0], players[1:]
    return [[(first, other), *more] for i, other in enumerate(rest) for more in pairings(rest[:i] + rest[i + 1 :])]


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 8), st.integers(1, 8), st.data())
def test_swiss_pairs_as_the_best_of_all_pairings(entrants: int, rounds: int, data: st.DataObject) -> None:
    """The reference tries every pairing and compares what the docstring of the format says, from the meetings alone."""
    outcomes, _ = held(make_format("swiss", entrants, rounds), entrants, by_chance(data, draws=True))
    meetings = make_format("swiss", entrants, rounds).meetings(entrants, outcomes)
    for number in range(1, rounds + 1):
        before = [meeting for meeting in meetings if int(meeting.stage[1:]) < number]
        have = points(entrants, before)
        table = sorted(range(entrants), key=lambda who: (-have[who], who))
        times = Counter(frozenset((meeting.first, meeting.second)) for meeting in before)

        def badness(pairs: list[tuple[int, int]]) -> tuple[float, ...]:
            repeated = sum(times[frozenset(both)] ** 2 for both in pairs)  # noqa: B023
            bye = [max(both) for both in pairs if NOBODY in both]
            real = [both for both in pairs if NOBODY not in both]
            return (repeated, -sum(table.index(who) for who in bye), sum((have[a] - have[b]) ** 2 for a, b in real))  # noqa: B023

        everybody = [*range(entrants), *([NOBODY] if entrants % 2 else [])]
        ours = [(meeting.first, meeting.second) for meeting in meetings if meeting.stage == f"R{number}"]
        best = min(map(badness, pairings(everybody)))
        assert badness(ours) == best
        if any(not any(times[frozenset(both)] for both in pairs) for pairs in pairings(everybody)):
            assert best[0] == 0, "nobody meets twice where that can be avoided"


@settings(deadline=None, max_examples=25)
@given(ENTRANTS, st.data())
def test_swiss_has_its_rounds_and_no_rematch(entrants: int, data: st.DataObject) -> None:
    """With as many rounds as single elimination has, a pairing without a rematch exists for all but the smallest fields."""
    format = make_format("swiss", entrants)
    outcomes, played = held(format, entrants, by_chance(data, draws=True))
    assert len(played) == rounds_of(entrants) * (entrants // 2)
    if entrants >= 10:
        pairs = Counter(frozenset((meeting.first, meeting.second)) for meeting in format.meetings(entrants, outcomes))
        assert set(pairs.values()) == {1}, "byes count too: nobody has two"
    assert sum(points(entrants, format.meetings(entrants, outcomes))) == rounds_of(entrants) * ((entrants + 1) // 2)


def test_the_first_round_of_swiss_is_the_upper_half_against_the_lower_one() -> None:
    assert pair(8, []) == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert pair(7, []) == [(0, 3), (1, 4), (2, 5), (6, NOBODY)]


def test_buchholz_is_the_sum_of_the_points_of_opponents() -> None:
    win = Outcome(2, 0, 0)
    meetings = [Meeting("R1.1", "R1", 0, 1, win), Meeting("R1.2", "R1", 2, NOBODY), Meeting("R2.1", "R2", 2, 0, win),
                Meeting("R2.2", "R2", 1, NOBODY)]
    assert points(3, meetings) == [1.0, 1.0, 2.0]
    assert buchholz(3, meetings) == [3.0, 2.0, 3.0], "0 met 1 and 2; 1 met 0 and has a bye; 2 has a bye and met 0"


def test_rounds_are_for_swiss_alone() -> None:
    with pytest.raises(UserError, match="--rounds is for --format swiss"):
        make_format("single-elimination", 4, 3)
