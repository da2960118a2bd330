"""The chart of a ladder: rating against steps, as an SVG that reads well on light and dark pages.

Every run is a line with its 95 % interval as a band, and has thin vertical lines where settings were changed while it ran and
where milestones were kept. Players that do not change are dashed horizontal lines. Where nobody has more than one version, as
in most tournaments, players stand side by side, each with its interval.
"""
from __future__ import annotations

from collections.abc import Mapping
from html import escape

from wavedash.league.ladder import Ladder, Mark, Version
from wavedash.league.ratings import Rating
from wavedash.report.svg import COLOURS, STYLE, in_short, round_numbers

HEIGHT, LEFT, TOP, BOTTOM = 420, 60, 24, 46
RIGHT = 600
"""Where the plot ends and the labels of the lines begin"""
LETTER = 8
"""The width of a letter, at most on average"""
LABEL_HEIGHT = 14
MOST_BEYOND = 200.0
"""Bands may go so many points beyond all ratings; what is farther away is cut off, so that a wide one hides nothing else"""


def draw(ladder: Ladder) -> str:
    """The SVG."""
    scale = Scale(ladder)
    parts = [*_axes(scale)]
    labels: list[tuple[float, str, str]] = []
    for number, (player, rating) in enumerate(ladder.fixed.items()):
        y = scale.y(rating.value)
        begin = LEFT if ladder.runs else LEFT + (RIGHT - LEFT) * (number + 0.5) / len(ladder.fixed)
        parts.append(f'<line class="fixed" x1="{begin:.1f}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts += [] if ladder.runs else _alone(rating, begin, scale)
        version = Version.of(player)  # the only one of its run here: its steps would only make the label long
        labels.append((y, f"{player if version is None else version.run} {rating.value:.0f}", "muted"))
    for number, (run, versions) in enumerate(ladder.runs.items()):
        colour = f"c{number % len(COLOURS)}"
        parts += [_mark(mark, scale, colour) for mark in ladder.marks if mark.run == run and mark.steps <= scale.most]
        parts += _line(versions, scale, colour)
        last = versions[max(versions)]
        labels.append((scale.y(last.value), f"{run} {last.value:.0f}", colour))
    parts += _labels(labels)
    width = RIGHT + 16 + LETTER * max(len(text) for _, text, _ in labels)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12">', STYLE,
        f'<clipPath id="plot"><rect x="{LEFT}" y="{TOP}" width="{RIGHT - LEFT}" height="{HEIGHT - BOTTOM - TOP}"/>'
        "</clipPath>",
        '<rect class="page" width="100%" height="100%"/>', *parts, "</svg>", ""])


class Scale:
    """From steps and ratings to places in the chart."""

    def __init__(self, ladder: Ladder) -> None:
        self.most = float(max((steps for versions in ladder.runs.values() for steps in versions), default=1))
        values = [rating.value for rating in ladder.ratings.values()]
        self.has_steps = bool(ladder.runs)
        banded = [rating for versions in ladder.runs.values() for rating in versions.values()] or list(ladder.fixed.values())
        lowest, highest = min(values), max(values)
        self.low = min([lowest - 20, *(max(rating.low, lowest - MOST_BEYOND) for rating in banded)])
        self.high = max([highest + 20, *(min(rating.high, highest + MOST_BEYOND) for rating in banded)])

    def x(self, steps: float) -> float:
        return LEFT + (RIGHT - LEFT) * steps / self.most

    def y(self, rating: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (rating - self.low) / (self.high - self.low)


def _axes(scale: Scale) -> list[str]:
    parts = []
    for rating in round_numbers(scale.low, scale.high, 8):
        y = scale.y(rating)
        parts += [f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>',
                  f'<text class="muted" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{rating:.0f}</text>']
    parts.append(f'<text class="ink" x="{LEFT - 44}" y="{TOP - 8}">rating (Elo), with 95 % intervals</text>')
    if not scale.has_steps:
        return parts
    parts += [f'<text class="muted" x="{scale.x(steps):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{in_short(steps)}'
              "</text>" for steps in round_numbers(0.0, scale.most)]
    return [*parts, f'<text class="ink" x="{(LEFT + RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">steps</text>']


def _alone(rating: Rating, x: float, scale: Scale) -> list[str]:
    """A player without a line: a dot, and its interval as a bar."""
    low, high = scale.y(rating.low), scale.y(rating.high)
    return ['<g clip-path="url(#plot)">',
            f'<rect class="c0 band" x="{x - 5:.1f}" width="10" y="{high:.1f}" height="{low - high:.1f}"/>', "</g>",
            f'<circle class="c0 dot" cx="{x:.1f}" cy="{scale.y(rating.value):.1f}" r="3.5"/>']


def _line(versions: Mapping[int, Rating], scale: Scale, colour: str) -> list[str]:
    there = [f"{scale.x(steps):.1f},{scale.y(rating.high):.1f}" for steps, rating in versions.items()]
    back = [f"{scale.x(steps):.1f},{scale.y(rating.low):.1f}" for steps, rating in versions.items()]
    points = [(scale.x(steps), scale.y(rating.value)) for steps, rating in versions.items()]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return ['<g clip-path="url(#plot)">', f'<polygon class="{colour} band" points="{" ".join(there + back[::-1])}"/>',
            f'<polyline class="{colour} line" points="{line}"/>', "</g>",
            *(f'<circle class="{colour} dot" cx="{x:.1f}" cy="{y:.1f}" r="2.2"/>' for x, y in points)]


def _mark(mark: Mark, scale: Scale, colour: str) -> str:
    """A thin line where something was done to a run; a browser says what when the mouse is over it."""
    x = scale.x(mark.steps)
    return (f'<line class="{colour} mark" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}">'
            f"<title>{in_short(mark.steps)}: {escape(mark.what)}</title></line>")


def _labels(labels: list[tuple[float, str, str]]) -> list[str]:
    """Texts right of the plot, beside the end of their line, and moved apart where they would overlap."""
    placed: list[float] = []
    ordered = sorted(labels)
    for y, _, _ in ordered:
        placed.append(max(y, placed[-1] + LABEL_HEIGHT) if placed else y)
    below = (placed[-1] if placed else 0.0) - (HEIGHT - BOTTOM)
    if below > 0:  # the lowest ones go up again, and push up those above them
        limit = float(HEIGHT - BOTTOM)
        for i in range(len(placed) - 1, -1, -1):
            placed[i] = min(placed[i], limit)
            limit = placed[i] - LABEL_HEIGHT
    return [f'<text class="{style} label" x="{RIGHT + 8}" y="{y + 4:.1f}">{escape(text)}</text>'
            for y, (_, text, style) in zip(placed, ordered, strict=True)]
