"""Small tables are laid out in as many columns as the terminal has room for, and never higher than it.

Where they are too high the last tables lose rows first, then they are left out. The most important come first.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

LEAST_WIDTH = 38
"""The least width of a column: two fit into 80 characters"""
MOST_WIDTH = 46
"""The most width of a column: numbers that are far from their names are hard to read"""
LEAST_ROWS = 3
"""The rows that a table keeps, before another table is left out"""
BORDER = 2
"""Lines of a table besides its rows"""


@dataclass(frozen=True)
class Row:
    """A name and its number."""

    label: str
    value: str
    style: str = ""
    weight: float = 1.0
    """A table that is cut keeps its heaviest rows, the first ones among equals."""


@dataclass(frozen=True)
class MetricTable:
    """A titled table of names and numbers."""

    title: str
    rows: Sequence[Row]

    def cut(self, most: int) -> MetricTable:
        """Returns the table with at most so many rows, in their order; the last one then says how many are missing."""
        if len(self.rows) <= most:
            return self
        heaviest = sorted(range(len(self.rows)), key=lambda index: -self.rows[index].weight)[: most - 1]
        kept = [self.rows[index] for index in sorted(heaviest)]
        return MetricTable(self.title, [*kept, Row(f"… {len(self.rows) - len(kept)} more", "")])

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


def layout_tables(tables: Sequence[MetricTable], width: int, height: int) -> RenderableType:
    """Lays out the tables that fit into so many characters and lines."""
    columns = max(1, min(len(tables), width // LEAST_WIDTH))
    each = min(MOST_WIDTH, width // columns)
    grid = Table.grid(padding=0)
    grid.add_row(*(Group(*(table.drawn(each) for table in column)) for column in _fitting(tables, columns, height)))
    return grid


def _fitting(tables: Sequence[MetricTable], columns: int, height: int) -> list[list[MetricTable]]:
    for count in range(len(tables), 0, -1):
        shown = list(tables[:count])
        for index in range(count, -1, -1):
            stacks = _stacked(shown, columns)
            if all(sum(table.height for table in stack) <= height for stack in stacks):
                return stacks
            if index:
                shown[index - 1] = _cut_to_fit(shown, index - 1, columns, height)
    return []


def _cut_to_fit(tables: Sequence[MetricTable], index: int, columns: int, height: int) -> MetricTable:
    """Returns table number `index` with as many rows as let all fit into so many lines, or with the fewest if none do."""
    table, cut = tables[index], tables[index]
    for most in range(len(table.rows), LEAST_ROWS - 1, -1):
        cut = table.cut(most)
        stacks = _stacked([*tables[:index], cut, *tables[index + 1 :]], columns)
        if all(sum(each.height for each in stack) <= height for stack in stacks):
            break
    return cut


def _stacked(tables: Sequence[MetricTable], columns: int) -> list[list[MetricTable]]:
    """Places tables in columns: the highest table first, each in the column that is lowest. Columns and the tables in them are
    then shown in the original order."""
    stacks: list[list[int]] = [[] for _ in range(columns)]

    def height(stack: Sequence[int]) -> int:
        return sum(tables[index].height for index in stack)

    for index in sorted(range(len(tables)), key=lambda index: -tables[index].height):
        min(stacks, key=height).append(index)
    return [[tables[index] for index in stack] for stack in sorted(map(sorted, filter(None, stacks)))]
