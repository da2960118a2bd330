"""What the console shows of an iteration: the live view with its three tables, or one plain line."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from wavedash.ppo.listener import IterationReport

BAR_WIDTH = 26  # the whole then fits into 80 columns
PART_COLOURS = {
    "collect": "green", "env": "green", "inference": "cyan", "gae": "yellow", "update": "magenta", "other": "bright_black",
}


@dataclass(frozen=True)
class Progress:
    """How the run is going in this process: what a single report cannot know."""

    elapsed: float
    """Seconds since this process began to train."""
    remaining: float | None
    """Seconds to go at the pace so far; None before there is one."""
    checkpoint: str
    """The newest checkpoint, in words."""
    skipped: int
    """Gradient steps that were not finite and were skipped."""


def live_view(report: IterationReport, progress: Progress) -> RenderableType:
    """Progress, time split, three tables, health."""
    return Group(_progress_line(report, progress), _time_split(report), _tables(report), _health_line(report, progress))


def plain_line(report: IterationReport, progress: Progress) -> str:
    """The same in one line, for log files and pipes. Figures that were not measured are left out."""
    shown = {"return": "recent/return", "length": "recent/length", "success": "recent/success", "kl": "policy/kl"}
    parts = [
        f"{report.steps:,}/{report.total_steps:,} steps ({_share(report):.0%})",
        f"{report.steps_per_second:,.0f} steps/s",
        f"eta {_clock(progress.remaining)}",
        *(f"{label} {report.figures[name]:.4g}" for label, name in shown.items() if name in report.figures),
    ]
    return "  ".join(parts)


def _progress_line(report: IterationReport, progress: Progress) -> RenderableType:
    line = Table.grid(padding=(0, 2))
    bar = ProgressBar(total=1.0, completed=_share(report), width=BAR_WIDTH)
    line.add_row(
        bar,
        f"{_share(report):.0%}",
        f"{report.steps_per_second:,.0f} steps/s",
        f"{_clock(progress.elapsed)} gone, {_clock(progress.remaining)} left",
    )
    return line


def _time_split(report: IterationReport) -> RenderableType:
    """A bar whose parts are as long as their share of the iteration, with a legend."""
    whole = sum(report.seconds.values()) or 1.0
    bar, legend = Text(), Text()
    for part, seconds in report.seconds.items():
        colour = PART_COLOURS.get(part, "white")
        bar.append("━" * round(BAR_WIDTH * seconds / whole), colour)
        legend.append(f"{part} {seconds / whole:.0%}  ", colour)
    line = Table.grid(padding=(0, 2))
    line.add_row(bar, legend)
    return line


def _tables(report: IterationReport) -> RenderableType:
    figures = report.figures
    recent = figures.get("recent/count")
    return Columns([
        _table("this rollout", [
            ("episode length", _number(figures.get("rollout/length"))),
            ("return", _number(figures.get("rollout/return"))),
            ("reward per step", _number(figures.get("rollout/reward"))),
            ("clip fraction", _number(figures.get("policy/clip_fraction"))),
            ("KL", _number(figures.get("policy/kl"))),
            ("time", f"{sum(report.seconds.values()):.2f} s"),
        ]),
        _table("recent episodes" if recent is None else f"the last {recent:,.0f} episodes", [
            ("length", _number(figures.get("recent/length"))),
            ("return", _number(figures.get("recent/return"))),
            ("success rate", _number(figures.get("recent/success"))),
        ]),
        _table("the run", [
            ("episodes", f"{report.episodes:,}"),
            ("steps", f"{report.steps:,}"),
            ("rollouts", f"{report.iteration:,}"),
            ("total steps", f"{report.total_steps:,}"),
            ("clip range", _number(figures.get("optim/clip_range"))),
            ("learning rate", _number(figures.get("optim/learning_rate"))),
        ]),
    ])


def _table(title: str, rows: Sequence[tuple[str, str]]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(justify="right", min_width=10)
    for row in rows:
        table.add_row(*row)
    return Panel(table, title=title, expand=False)


def _health_line(report: IterationReport, progress: Progress) -> RenderableType:
    """Quiet while all is well; a counter that is not zero stands out."""
    line = Text(f"checkpoint {progress.checkpoint}", "dim")
    trouble = {name.removeprefix("health/"): value for name, value in report.figures.items() if name.startswith("health/")}
    for name, count in {**trouble, "skipped updates": progress.skipped}.items():
        line.append(f"   {name.replace('_', ' ')} {count:,.0f}", "bold yellow" if count else "dim")
    return line


def _share(report: IterationReport) -> float:
    return min(1.0, report.steps / report.total_steps)  # the last rollout may end past the goal


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def _clock(seconds: float | None) -> str:
    return "-" if seconds is None else str(timedelta(seconds=round(seconds)))
