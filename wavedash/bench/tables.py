"""How benchmarks measure and print: rates of several contestants, measured in turns, with ratios to the first of them."""
from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from wavedash.errors import UserError


def take_turns(contestants: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Measure every contestant once per round, so that a slow minute of the machine hits all. A peer that fails drops out."""
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name in list(rates):
            try:
                rates[name].append(contestants[name]())
            except UserError as error:
                print(f"{name} drops out: {error}")
                del rates[name]
    return rates


def print_rates(title: str, rates: Mapping[str, Sequence[float]], unit: str = "steps/s", beside: str = "wavedash is") -> None:
    """Print each median rate, its range, and how many times a peer's rate the first contestant reaches (median over rounds)."""
    ours = next(iter(rates.values()))
    table = Table(title=title, title_justify="left")
    for column, justify in (("", "left"), (unit, "right"), ("range", "right"), (beside, "right")):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for index, (name, values) in enumerate(rates.items()):
        ratio = statistics.median(mine / peer for mine, peer in zip(ours, values, strict=True))
        table.add_row(name, f"{statistics.median(values):,.0f}", f"{min(values):,.0f} - {max(values):,.0f}",
                      "" if index == 0 else f"{ratio:.2f} x")
    Console(width=110, highlight=False).print(table)
