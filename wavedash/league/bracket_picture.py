"""The picture of a tournament as an SVG that reads well on light and dark pages: a column for each round, winners marked; in a
bracket a line leads from a meeting to the next one of its winner."""
from __future__ import annotations

from collections.abc import Sequence
from html import escape

from wavedash.league.formats.meeting import NOBODY, Format, Meeting, Outcomes, by_stage
from wavedash.report.svg import STYLE

ROW, GAP, TOP, LEFT = 20, 16, 56, 16
"""Height of a name, space between meetings, and margins"""
LETTER = 7.2
"""The width of a letter, at most on average"""
LONGEST = 28
"""Letters; longer names are shortened, and a browser shows the whole name when the mouse is over it"""
BEGINNING = 9
"""Letters from the beginning of a shortened name. The end tells more: `NAME@STEPS`, `.../version-2/bot.toml`"""


def draw(format: Format, names: Sequence[str], outcomes: Outcomes) -> str:
    """The SVG."""
    meetings = format.meetings(len(names), outcomes)
    ranking = format.ranking(len(names), outcomes)
    over = all(not meeting.ready and meeting.known for meeting in meetings)
    champion = ranking[0].entrant if over else None
    box = 60 + LETTER * min(LONGEST, max(map(len, names)))
    parts, bottom, right = [], float(TOP), 0.0
    for letters in ("WF", "L") if format.knockout else ("R",):  # winners' bracket and finals; losers' bracket below
        stages = {stage: found for stage, found in by_stage(meetings).items() if stage[0] in letters}
        shown = {stage: met for stage, found in stages.items()  # byes may leave a stage without meetings
                 if (met := [meeting for meeting in found if not meeting.known or not meeting.bye or not format.knockout])}
        tallest = max((len(found) for found in shown.values()), default=0)
        height = tallest * (2 * ROW + GAP)
        if not tallest:
            continue
        winners: dict[int, tuple[float, float]] = {}
        """Where the line of each winner begins"""
        for column, (stage, found) in enumerate(shown.items()):
            x = LEFT + column * (box + 28)
            right = max(right, x + box)
            parts.append(f'<text class="muted" x="{x:.0f}" y="{bottom - 8:.0f}">{_title(stage)}</text>')
            for place, meeting in enumerate(found):
                y = bottom + height * (place + 0.5) / len(found) - ROW
                parts += _meeting(meeting, names, x, y, box, champion)
                for line, entrant in enumerate((meeting.first, meeting.second)):
                    if format.knockout and entrant in winners:
                        parts.append(_way(*winners.pop(entrant), x, y + ROW * (line + 0.5), entrant == champion))
                if meeting.winner is not None and meeting.winner != NOBODY:
                    winners[meeting.winner] = (x + box, y + ROW)
        bottom += height + 40
    titles = [f"{format.name}: {names[champion]} wins" if champion is not None else f"{format.name}: not finished"]
    for row in ranking:
        parts.append(f'<text class="ink" x="{LEFT}" y="{bottom:.0f}">{row.place}. {escape(names[row.entrant])} '
                     f'<tspan class="muted">{escape(row.text)}</tspan></text>')
        bottom += ROW
    width = max(right + LEFT, LEFT * 2 + LETTER * (50 + max(map(len, names))))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {bottom:.0f}" width="{width:.0f}" '
        f'height="{bottom:.0f}" font-family="sans-serif" font-size="12">', STYLE,
        '<rect class="page" width="100%" height="100%"/>',
        f'<text class="ink" x="{LEFT}" y="24" font-size="15" font-weight="bold">{escape(titles[0])}</text>', *parts,
        "</svg>", ""])


def _way(x: float, y: float, to_x: float, to_y: float, champion: bool) -> str:
    """The line from a meeting to the name of its winner in a later one."""
    turn = to_x - 12
    return (f'<path class="{"c0 line" if champion else "grid line"}" d="M{x:.1f} {y:.1f} H{turn:.1f} V{to_y:.1f} '
            f'H{to_x:.1f}"/>')


def _title(stage: str) -> str:
    kind, number = stage[0], stage[1:]
    if kind == "F":
        return "grand final" if number == "1" else "reset"
    return {"W": "round", "L": "losers' round", "R": "round"}[kind] + f" {number}"


def _meeting(meeting: Meeting, names: Sequence[str], x: float, y: float, box: float, champion: int | None) -> list[str]:
    """Two names with their won games; the winner is bold, and the champion's way is in colour."""
    path = champion is not None and champion == meeting.winner
    parts = [f'<rect class="phase" x="{x:.1f}" y="{y:.1f}" width="{box:.0f}" height="{2 * ROW}" rx="4"/>']
    if path:
        parts.append(f'<rect class="c0 dot" x="{x:.1f}" y="{y:.1f}" width="4" height="{2 * ROW}"/>')
    won = ("", "") if meeting.outcome is None else (str(meeting.outcome.won), str(meeting.outcome.lost))
    for line, (entrant, games) in enumerate(zip((meeting.first, meeting.second), won, strict=True)):
        name = "" if entrant is None else "bye" if entrant == NOBODY else names[entrant]
        wins = entrant is not None and entrant != NOBODY and entrant == meeting.winner
        style = "c0 label" if wins and path else "ink" if wins or meeting.outcome is None else "muted"
        bold = ' font-weight="bold"' if wins else ""
        base = y + ROW * line + 14
        parts += [f'<text class="{style}" x="{x + 10:.1f}" y="{base:.1f}"{bold}>{escape(shortened(name))}'
                  f"<title>{escape(name)}</title></text>",
                  f'<text class="{style}" x="{x + box - 8:.1f}" y="{base:.1f}" text-anchor="end"{bold}>{games}</text>']
    return parts


def shortened(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[:BEGINNING]}…{name[BEGINNING + 1 - LONGEST:]}"
