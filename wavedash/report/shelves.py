"""Small tables side by side: in as many columns as the terminal is wide, and never higher than it.

Where they are too high the last tables lose rows first, then they are left out. What matters most comes first.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

LEAST_WIDTH = 38
"""A column is at least so wide: 80 characters hold two."""
MOST_WIDTH = 46
"""A column is at most so wide: numbers that are far from their names are hard to read."""
LEAST_ROWS = 3
"""A table keeps so many before another one is left out."""
BORDER = 2
"""Lines of a table beside its rows."""


@dataclass(frozen=True)
class Row:
    """A name and its number."""

    label: str
    value: str
    style: str = ""
    weight: float = 1.0
    """Where a table is cut, its heaviest rows stay; of equal ones the first."""


@dataclass(frozen=True)
class Sheet:
    """A titled table of names and numbers."""

    title: str
    rows: Sequence[Row]

    def cut(self, most: int) -> Sheet:
        """At most so many rows, in their order; the last then says how many are missing."""
        if len(self.rows) <= most:
            return self
        heaviest = sorted(range(len(self.rows)), key=lambda index: -self.rows[index].weight)[: most - 1]
        kept = [self.rows[index] for index in sorted(heaviest)]
        return Sheet(self.title, [*kept, Row(f"… {len(self.rows) - len(kept)} more", "")])

    @property
    def height(self) -> int:
        return len(self.rows) + BORDER

    def drawn(self, width: int) -> RenderableType:
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(style="dim", no_wrap=True, overflow="ellipsis", ratio=1)
        table.add_column(justify="right", no_wrap=True)
        for row in self.rows:
            table.add_row(Text(row.label), Text(row.value, row.style))
        return Panel(table, title=Text(self.title), width=width)


def shelved(sheets: Sequence[Sheet], width: int, height: int) -> RenderableType:
    """All that have a place in so many characters and lines."""
    columns = max(1, min(len(sheets), width // LEAST_WIDTH))
    each = min(MOST_WIDTH, width // columns)
    grid = Table.grid(padding=0)
    grid.add_row(*(Group(*(sheet.drawn(each) for sheet in column)) for column in _fitting(sheets, columns, height)))
    return grid


def _fitting(sheets: Sequence[Sheet], columns: int, height: int) -> list[list[Sheet]]:
    for count in range(len(sheets), 0, -1):
        shown = list(sheets[:count])
        for index in range(count, -1, -1):
            stacks = _stacked(shown, columns)
            if all(sum(sheet.height for sheet in stack) <= height for stack in stacks):
                return stacks
            if index:
                shown[index - 1] = _cut_to_fit(shown, index - 1, columns, height)
    return []


def _cut_to_fit(sheets: Sequence[Sheet], index: int, columns: int, height: int) -> Sheet:
    """The sheet with this number with as many rows as leave all in so many lines, or with the fewest if none do."""
    sheet, cut = sheets[index], sheets[index]
    for most in range(len(sheet.rows), LEAST_ROWS - 1, -1):
        cut = sheet.cut(most)
        stacks = _stacked([*sheets[:index], cut, *sheets[index + 1 :]], columns)
        if all(sum(each.height for each in stack) <= height for stack in stacks):
            break
    return cut


def _stacked(sheets: Sequence[Sheet], columns: int) -> list[list[Sheet]]:
    """The highest are placed first, each in the column that is lowest; on the screen they then stand in their own order."""
    stacks: list[list[int]] = [[] for _ in range(columns)]

    def height(stack: Sequence[int]) -> int:
        return sum(sheets[index].height for index in stack)

    for index in sorted(range(len(sheets)), key=lambda index: -sheets[index].height):
        min(stacks, key=height).append(index)
    return [[sheets[index] for index in stack] for stack in sorted(map(sorted, filter(None, stacks)))]
