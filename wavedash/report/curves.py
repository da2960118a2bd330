"""The curves of a run as one picture: metrics above each other, with its phases and the changes that were made to it.

It reads `metrics.jsonl` and `events.jsonl` of the run folder alone, so it draws runs that run and runs that are finished. The
picture is an SVG that reads well on light and dark pages.
"""
from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from wavedash.errors import UserError
from wavedash.report.svg import STYLE, in_short, round_numbers
from wavedash.runs.events import PHASE, EventsFile, in_words

DEFAULT = ("recent/return", "rating/elo", "env/per_minute/touches", "env/per_minute/goals", "policy/entropy_share")
"""Metrics that are drawn if none are asked for, as far as the run has them"""
WIDTH, LEFT, RIGHT, TOP = 860, 70, 846, 34
PANEL, GAP = 120, 28
POINTS = 240
"""The most points of a line: each is the mean of the iterations that it stands for"""
LINE = 16
"""The height of a line of text below the panels"""


@dataclass(frozen=True)
class Marked:
    """A phase from one step to another, or a change at a step."""

    step: float
    text: str


@dataclass(frozen=True)
class Curves:
    """What is drawn of a run."""

    title: str
    rows: list[dict[str, Any]]
    """The metrics of each iteration"""
    phases: list[Marked]
    """Where each phase begins"""
    changes: list[Marked]
    """Settings that users have changed, and orders"""

    @classmethod
    def read(cls, run: Path) -> Curves:
        """Reads the files of a run folder. UserError: it has no metrics yet."""
        rows = list(_json_lines(run / "metrics.jsonl"))
        if not rows:
            raise UserError(f"{run} has no metrics yet: they are written after the first iteration")
        phases: list[Marked] = []
        for before, row in zip([{}, *rows], rows, strict=False):
            if row.get("phase") is not None and row["phase"] != before.get("phase"):
                phases.append(Marked(before.get("steps", 0), row["phase"].removeprefix("Phase").replace("-", " ", 1)))
        changes = [Marked(row["step"], said) for row in EventsFile(run / "events.jsonl").rows()
                   if row.get("key") != PHASE and (said := in_words(row)) is not None]
        return cls("/".join(run.absolute().parts[-2:]), rows, phases, changes)

    def metrics(self, asked: Sequence[str]) -> list[str]:
        """The metrics to draw. UserError: the run has none of that name."""
        known = {name for row in self.rows for name, value in row.items() if isinstance(value, int | float)}
        for name in asked:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                raise UserError(f"the run has no metric {name!r}; "
                                + (f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(known))}"))
        return list(asked) or [name for name in DEFAULT if name in known]

    def points(self, metric: str) -> list[tuple[float, float]]:
        """Steps and values of a metric, as means of neighbouring iterations where there are many."""
        found = [(row["steps"], row[metric]) for row in self.rows if row.get(metric) is not None]
        size = -(-len(found) // POINTS) or 1
        groups = [found[i:i + size] for i in range(0, len(found), size)]
        return [(group[-1][0], sum(y for _, y in group) / len(group)) for group in groups]


def draw(curves: Curves, asked: Sequence[str] = ()) -> str:
    """The SVG."""
    metrics = curves.metrics(asked)
    most = float(curves.rows[-1]["steps"])
    bottom = TOP + len(metrics) * (PANEL + GAP)
    notes = [f"{number}  at {in_short(change.step)}: {change.text}" for number, change in enumerate(curves.changes, 1)]
    parts = [f'<text class="ink" x="{LEFT}" y="18" font-weight="bold">{escape(curves.title)}</text>']
    for number, metric in enumerate(metrics):
        parts += _panel(curves, metric, TOP + GAP + number * (PANEL + GAP), most, names=number == 0)
    parts += [f'<text class="muted" x="{_x(steps, most):.1f}" y="{bottom + 16}" text-anchor="middle">{in_short(steps)}</text>'
              for steps in round_numbers(0.0, most)]
    parts.append(f'<text class="muted" x="{LEFT - 8}" y="{bottom + 16}" text-anchor="end">steps</text>')
    parts += [f'<text class="muted" x="{LEFT}" y="{bottom + 24 + LINE * line}">{escape(note)}</text>'
              for line, note in enumerate(notes, 1)]
    height = bottom + 30 + LINE * len(notes)
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
                      f'height="{height}" font-family="sans-serif" font-size="12">', STYLE,
                      '<rect class="page" width="100%" height="100%"/>', *parts, "</svg>", ""])


def _panel(curves: Curves, metric: str, top: float, most: float, names: bool) -> Iterator[str]:
    """One metric. The first panel names the phases."""
    points = curves.points(metric)
    low, high = min(y for _, y in points), max(y for _, y in points)
    margin = (high - low or abs(high) or 1.0) * 0.06
    low, high = low - margin, high + margin

    def place(y: float) -> float:
        return top + PANEL - PANEL * (y - low) / (high - low)

    ends = [*(phase.step for phase in curves.phases[1:]), most]
    for number, (phase, end) in enumerate(zip(curves.phases, ends, strict=False)):  # a run without phases has none
        left, right = _x(phase.step, most), _x(end, most)
        if number % 2 == 0:
            yield f'<rect class="phase" x="{left:.1f}" y="{top}" width="{right - left:.1f}" height="{PANEL}"/>'
        if names:
            text = phase.text if 6.2 * len(phase.text) < right - left else phase.text.partition(" ")[0]
            yield f'<text class="muted" x="{(left + right) / 2:.1f}" y="{top - 18}" text-anchor="middle">{escape(text)}</text>'
    for y in round_numbers(low, high, 4):
        yield f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{place(y):.1f}" y2="{place(y):.1f}"/>'
        yield f'<text class="muted" x="{LEFT - 8}" y="{place(y) + 4:.1f}" text-anchor="end">{y:g}</text>'
    for number, change in enumerate(curves.changes, 1):
        x = _x(change.step, most)
        yield f'<line class="fixed" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{top + PANEL}"/>'
        yield f'<text class="muted" x="{x + 3:.1f}" y="{top + 10}" font-size="9">{number}</text>'
    line = " ".join(f"{_x(x, most):.1f},{place(y):.1f}" for x, y in points)
    yield f'<polyline class="c0 line" points="{line}"/>'
    yield f'<text class="ink" x="{LEFT}" y="{top - 5}">{escape(metric)}</text>'


def _x(steps: float, most: float) -> float:
    return LEFT + (RIGHT - LEFT) * steps / most


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file, up to one that a kill left unfinished; none if there is no file."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8") as file:
        for line in file:
            try:
                row = json.loads(line)
            except ValueError:
                return
            if isinstance(row, dict):
                yield row
