"""Findings: what a debug report says, in lines to read, and what looks wrong in it."""
from __future__ import annotations

from collections.abc import Iterable, Sequence


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


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lines with a column for each heading: the first column to the left, the others to the right."""
    cells = [list(headings), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headings))]
    return ["  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                      for i, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip() for row in cells]


def few(items: Sequence[object], most: int = 12) -> str:
    """The first of them, and how many there are more: `0, 1, 2 and 5 more`."""
    shown = ", ".join(map(str, items[:most]))
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"
