"""The picture of a bracket: a line leads from every meeting to the next one of its winner, and nowhere else."""
from __future__ import annotations

import re

import pytest

from wavedash.league.bracket_picture import LONGEST, draw, shortened
from wavedash.league.formats import make_format
from wavedash.league.formats.meeting import Outcome, Outcomes, next_meeting

LINE = re.compile(r'<path class="(c0|grid) line" d="M([\d.]+) ([\d.]+) H[\d.]+ V([\d.]+) H([\d.]+)"/>')
NAME = re.compile(r'<text class="[^"]*" x="([\d.]+)" y="([\d.]+)"[^>]*>[^<]*<title>(\w+)</title>')


def played(format_name: str, entrants: int, meetings: int) -> str:
    """The picture after so many meetings, which the better seed wins."""
    held, outcomes = make_format(format_name, entrants, None), dict[str, Outcome]()
    found: Outcomes = outcomes
    while len(outcomes) < meetings and (meeting := next_meeting(held, entrants, found)) is not None:
        outcomes[meeting.name] = Outcome(2, 0, 0 if meeting.first < meeting.second else 1)
    return draw(held, [f"bot{seed}" for seed in range(entrants)], found)


@pytest.mark.parametrize(("format_name", "entrants"), [("single-elimination", 8), ("single-elimination", 5),
                                                       ("double-elimination", 8), ("double-elimination", 5)])
def test_lines_end_at_the_name_of_the_winner_they_began_with(format_name: str, entrants: int) -> None:
    picture = played(format_name, entrants, 1000)
    names = [(float(x), float(y), name) for x, y, name in NAME.findall(picture)]
    lines = LINE.findall(picture)
    for colour, x, y, to_y, to_x in lines:
        (end,) = [name for at_x, at_y, name in names if at_x == float(to_x) + 10 and at_y == float(to_y) + 4]
        inside = [name for at_x, at_y, name in names if at_x < float(x) and abs(at_y - float(y)) < 20]
        assert end in inside and float(to_x) > float(x)
        assert (colour == "c0") == (end == "bot0"), "the champion's way is in colour"
    if format_name == "single-elimination":
        assert len(lines) == {8: 6, 5: 3}[entrants], "all meetings but the final, without byes"


def test_a_league_of_everybody_against_everybody_has_no_lines() -> None:
    assert not LINE.findall(played("round-robin", 5, 1000)) and LINE.findall(played("single-elimination", 8, 5))


def test_every_heading_has_meetings_below_it():
    """With five bots, byes leave the first round of the losers without a meeting."""
    picture = played("double-elimination", 5, 1000)
    headings = re.findall(r'<text class="muted" x="([\d.]+)" y="([\d.]+)">([^<]*)</text>', picture)
    columns = {round(float(x) - 10) for x, _, _ in NAME.findall(picture)}
    assert {float(x) for x, _, _ in headings} == columns
    assert "losers' round 1" not in [title for _, _, title in headings] and len(headings) == 7


def test_long_names_are_told_apart() -> None:
    """Two bots of the same name are named by their paths, which differ near the end, and versions of a run by their steps."""
    names = ["/home/me/rocket-league/bots/version-1/bot.toml", "/home/me/rocket-league/bots/version-2/bot.toml",
             "a-run-with-quite-a-long-name@120000000", "a-run-with-quite-a-long-name@140000000"]
    shown = re.findall(r">([^<>]+)<title>", draw(make_format("single-elimination", 4), names, {}))
    assert len(set(shown)) == 4 and all(len(name) == LONGEST for name in shown)
    assert shortened("x" * LONGEST) == "x" * LONGEST
