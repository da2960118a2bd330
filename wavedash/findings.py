"""Findings: what a debug report says, in lines to read, and what looks wrong in it."""
from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import SupportsFloat


class Findings:
    """Lines of a report. Problems are said first; details go only into the file of the report."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.problems: list[str] = []
        """What looks wrong, each with the next step"""
        self.details: list[str] = []

    def say(self, *lines: str) -> None:
        self.lines += lines

    def problem(self, text: str) -> None:
        self.problems.append(text)

    def detail(self, *lines: str) -> None:
        self.details += lines

    def add(self, other: Findings | None) -> None:
        """Appends what another one says, if there is one."""
        if other is not None:
            self.lines += other.lines
            self.problems += other.problems
            self.details += other.details

    def __bool__(self) -> bool:
        return bool(self.lines or self.problems or self.details)


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], left: Collection[str] = ()) -> list[str]:
    """Lines with a column for each heading: the first one and those named in `left` are set to the left."""
    cells = [list(headings), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headings))]
    justify = [str.ljust if i == 0 or heading in left else str.rjust for i, heading in enumerate(headings)]
    placed = ([place(cell, width) for place, cell, width in zip(justify, row, widths, strict=True)] for row in cells)
    return ["  ".join(row).rstrip() for row in placed]


def number(x: SupportsFloat, digits: int = 4) -> str:
    """A number with so many digits; zero has no sign."""
    return f"{float(x) + 0.0:.{digits}g}"


def few(items: Sequence[object], most: int = 12) -> str:
    """The first of them, and how many there are more: `0, 1, 2 and 5 more`."""
    shown = ", ".join(map(str, items[:most]))
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"
