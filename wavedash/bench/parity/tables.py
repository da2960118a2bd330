"""What `wavedash bench parity` prints: verdicts, errors, and the distributions of tumbling cars."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.table import Table

from wavedash.bench.parity.compare import (
    CHANGE_LIMITS,
    EVENT_LIMIT,
    HORIZONS,
    JUDGED,
    POSITION_LIMIT,
    QUANTITIES,
    VELOCITY_LIMIT,
    Quantiles,
    Row,
)
from wavedash.bench.parity.pair import SimulatorPair
from wavedash.bench.parity.scene import Target
from wavedash.bench.parity.spread import FACES, SpreadRow


@dataclass
class Sheet:
    """A table, for the console and as Markdown."""

    title: str
    columns: list[tuple[str, Literal["left", "right"]]]
    rows: list[list[str]]

    def print(self) -> None:
        table = Table(title=self.title, title_justify="left", padding=(0, 0, 0, 1))
        for name, justify in self.columns:
            table.add_column(name, justify=justify, no_wrap=True)
        for row in self.rows:
            table.add_row(*row)
        Console(width=180, highlight=False).print(table)

    def markdown(self) -> str:
        rules = ["---:" if justify == "right" else "---" for _, justify in self.columns]
        lines = [[name.replace("\n", " ") for name, _ in self.columns], rules, *self.rows]
        return f"## {self.title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def print_tables(pair: SimulatorPair, names: list[str], markdown: Path | None) -> None:
    measured = []
    for name in names:
        measured.append(pair.measure(name))
        print(f"{name}: {_verdict(*measured[-1])}", flush=True)
    rows, spreads = [row for row, _ in measured], [spread for _, spread in measured if spread]
    sheets = [_verdicts(rows, {spread.scene.name: spread for spread in spreads}), _errors(rows)]
    if spreads:
        sheets.append(_spreads(spreads))
    for sheet in sheets:
        sheet.print()
    if markdown:
        markdown.write_text("\n".join(sheet.markdown() for sheet in sheets), encoding="utf-8")


def _verdict(row: Row, spread: SpreadRow | None) -> str:
    misses = [*row.misses, *(spread.misses if spread else [])]
    return "MISSED: " + ", ".join(misses) if misses else "met"


def _verdicts(rows: list[Row], spreads: dict[str, SpreadRow]) -> Sheet:
    lines = []
    for row in rows:
        spread = spreads.get(row.scene.name)
        what, target = _judged(row, spread)
        at = row.scene.events_at
        kind, share = row.worst_event(at)
        events = "-" if spread else "100 %" if share == 1 else f"{100 * share:.2f} % ({kind})"
        lines.append([row.scene.name, str(row.starts), what, target, events, "-" if spread else str(at), _verdict(row, spread)])
    return Sheet("Verdicts", [
        ("scene", "left"), ("starts", "right"), ("measured", "left"), ("target", "left"),
        (f"agreement on events\n(target: over {100 * EVENT_LIMIT:.0f} %)", "left"), ("after ticks", "right"), ("", "left"),
    ], lines)


def _judged(row: Row, spread: SpreadRow | None) -> tuple[str, str]:
    """Describe what was measured, and its target."""
    if spread:
        name, (worst, natural) = max(spread.distances.items(), key=lambda item: item[1][0])
        return f"{name}: {worst:.2f} (nudged {natural:.2f})", f"< {spread.limit:.2f}"
    if row.change:
        limit = CHANGE_LIMITS[row.scene.target]
        return f"{_number(100 * row.change.median)} % of the change (of {row.changed})", f"< {100 * limit:.0f} %"
    if row.scene.target is Target.MOTION:
        position, velocity = (max(row.errors[body, JUDGED][name].median for body in row.scene.of)
                              for name in ("position", "velocity"))
        return f"{_number(position)} uu, {_number(velocity)} uu/s", f"< {POSITION_LIMIT} uu, < {VELOCITY_LIMIT} uu/s"
    return "-", "-"


def _errors(rows: list[Row]) -> Sheet:
    units = {"position": "uu", "velocity": "uu/s", "angular_velocity": "rad/s"}
    names = {"angular_velocity": "spin"}
    columns: list[tuple[str, Literal["left", "right"]]] = [("scene", "left"), ("of", "left")]
    columns += [(f"tick {tick}\n{names.get(name, name)}, {units[name]}", "right") for tick in HORIZONS for name in QUANTITIES]
    lines = []
    for row in rows:
        for body in row.scene.of:
            cells = [row.errors.get((body, tick), {}).get(name) for tick in HORIZONS for name in QUANTITIES]
            lines.append([row.scene.name, body, *(_errors_cell(cell) for cell in cells)])
    return Sheet("Errors: median / 99 of 100 are below", columns, lines)


def _spreads(rows: list[SpreadRow]) -> Sheet:
    lines = []
    for row in rows:
        poses = ", ".join(f"{name} {100 * a:.0f}/{100 * b:.0f} %" for name, a, b in zip(
            FACES, row.theirs.faces.tolist(), row.ours.faces.tolist(), strict=True) if a or b)
        medians = [f"{float(a.median()):.2g}/{float(b.median()):.2g}" for a, b in (
            (row.theirs.settled, row.ours.settled), *((row.theirs.energy[s], row.ours.energy[s]) for s in row.theirs.energy))]
        for (name, (ours, natural)), shown in zip(row.distances.items(), [poses, *medians], strict=True):
            lines.append([row.scene.name, name, shown, f"{ours:.3f}", f"{natural:.3f}", f"{row.limit:.3f}",
                          "MISSED" if name in row.misses else "met"])
    return Sheet("Tumbling cars: distances between distributions", [
        ("scene", "left"), ("of", "left"), ("RocketSim / ours (shares, medians)", "left"), ("ours", "right"),
        ("RocketSim, nudged", "right"), ("limit", "right"), ("", "left"),
    ], lines)


def _errors_cell(errors: Quantiles | None) -> str:
    return "-" if errors is None else f"{_number(errors.median)} / {_number(errors.most)}"


def _number(x: float) -> str:
    if x == 0:
        return "0"
    return "<.001" if x < 1e-3 else f"{x:.2g}" if x < 100 else f"{x:.0f}"
