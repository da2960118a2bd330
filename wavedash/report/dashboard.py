"""The dashboard is what the console shows of an iteration: the live view with its tables, or one plain line.

Environments choose their most important metrics (`VecEnv.headlines`): these tables come first, with the names given there.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from wavedash.envs.headline import Headline
from wavedash.ppo.listener import IterationReport
from wavedash.report.table_layout import MetricTable, Row, layout_tables

BAR_WIDTH = 26  # the whole line fits into 80 columns
PART_COLOURS = {
    "collect": "green", "env": "green", "inference": "cyan", "gae": "yellow", "update": "magenta", "other": "bright_black",
}


@dataclass(frozen=True)
class Progress:
    """The progress of the run in this process, which a single report does not know."""

    elapsed: float
    """Seconds since this process began to train"""
    remaining: float | None
    """Seconds to go at the pace so far; None before the first iteration"""
    checkpoint: str
    """The newest checkpoint, as text"""
    skipped: int
    """The number of gradient steps that were not finite and were skipped"""


class LiveView:
    """Progress, time split, tables and health, as much of them as the terminal has room for."""

    def __init__(self, report: IterationReport, progress: Progress, headlines: Sequence[Headline] = ()):
        self.above = [_progress_line(report, progress), _time_split(report)]
        own = [_headline_table(headline, report) for headline in headlines]
        recent, *rest = _tables(report)
        of_league = [_rating_table(report), _league_table(report)]
        self.tables = [*own[:1], *of_league, recent, _teacher_table(report), *own[1:], *rest]  # the most important first
        self.below = [_health_line(report, progress)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        taken = sum(len(console.render_lines(x, options.update(height=None))) for x in (*self.above, *self.below))
        yield from self.above
        yield layout_tables([table for table in self.tables if table.rows], options.max_width, options.size.height - taken - 1)
        yield from self.below


def plain_line(report: IterationReport, progress: Progress, headlines: Sequence[Headline] = ()) -> str:
    """Returns a report as one line, for log files and pipes. Metrics that were not measured are left out."""
    shown = {"return": "recent/return", "length": "recent/length", "success": "recent/success", "kl": "policy/kl",
             "distill loss": "distill/loss", "agreement": "distill/agreement", "error": "distill/error",
             "imitation loss": "imitate/loss", "accuracy": "imitate/accuracy", "held-out loss": "imitate/held_out_loss"}
    parts = [
        *([] if report.phase is None else [report.phase]),
        f"{report.steps:,}/{report.total_steps:,} steps ({_share(report):.0%})",
        f"{report.steps_per_second:,.0f} steps/s",
        f"eta {_clock(progress.remaining)}",
        *(f"{label} {report.metrics[name]:.4g}" for label, name in shown.items() if name in report.metrics),
        *([f"rating {rating}"] if (rating := _rating(report)) else []),
        *([f"points against opponents {points:.0%}"] if (points := report.metrics.get("league/win_rate")) is not None else []),
        *filter(None, (_headline_text(headline, report) for headline in headlines)),
    ]
    return "  ".join(parts)


def _headline_text(headline: Headline, report: IterationReport) -> str:
    """Returns the title and its numbers; of shares only the three largest, because a line has no room for more."""
    found = headline.measured(report.metrics, "env/")
    if headline.shares:
        found = dict(sorted(found.items(), key=lambda item: -abs(item[1]))[:3])
    numbers = [f"{headline.metrics[name]} {f'{x:+.0%}' if headline.shares else f'{x:.3g}'}" for name, x in found.items()]
    return f"{headline.title}: {', '.join(numbers)}" if numbers else ""


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
    """Draws a bar whose parts are as long as their share of the iteration, with a legend."""
    whole = sum(report.seconds.values()) or 1.0
    bar, legend = Text(), Text()
    for part, seconds in report.seconds.items():
        colour = PART_COLOURS.get(part, "white")
        bar.append("━" * round(BAR_WIDTH * seconds / whole), colour)
        legend.append(f"{part} {seconds / whole:.0%}  ", colour)
    line = Table.grid(padding=(0, 2))
    line.add_row(bar, legend)
    return line


def _headline_table(headline: Headline, report: IterationReport) -> MetricTable:
    """Makes the table of a headline. Negative shares are red; where there is no room for all, the largest are shown."""
    found = {headline.metrics[name]: x for name, x in headline.measured(report.metrics, "env/").items()}
    if headline.shares:
        rows = [Row(label, f"{x:+.1%}", "red" if x < 0 else "", abs(x)) for label, x in found.items()]
        return MetricTable(headline.title, rows)
    return MetricTable(headline.title, [Row(label, _number(x)) for label, x in found.items()])


def _rating_table(report: IterationReport) -> MetricTable:
    """Makes the table of the last rating, with the share of the goals that the policy scored against each player."""
    prefix = "rating/goal_share_"
    shares = {name.removeprefix(prefix): x for name, x in report.metrics.items() if name.startswith(prefix)}
    rows = [Row("Elo", rating)] if (rating := _rating(report)) else []
    return MetricTable("rating", [*rows, *(Row(f"goals against {name}", f"{x:.1%}") for name, x in shares.items())])


def _rating(report: IterationReport) -> str:
    """Returns the rating with its interval, or nothing if there was none yet."""
    elo, low, high = (report.metrics.get(f"rating/{name}") for name in ("elo", "low", "high"))
    return "" if elo is None else f"{elo:.0f} ({low:.0f} to {high:.0f})"


def _league_table(report: IterationReport) -> MetricTable:
    """Makes the table of opponents: the share of points that the policy takes from all of them, and from some in particular."""
    prefix = "league/win_rate_"
    shares = {name.removeprefix(prefix): x for name, x in report.metrics.items() if name.startswith(prefix)}
    whole, members = (report.metrics.get(f"league/{name}") for name in ("win_rate", "members"))
    rows = [] if members is None else [Row("members", f"{members:.0f}")]
    rows += [] if whole is None else [Row("points", f"{whole:.1%}")]
    return MetricTable("opponents", [*rows, *(Row(f"points against {name}", f"{x:.1%}") for name, x in shares.items())])


def _teacher_table(report: IterationReport) -> MetricTable:
    """Makes the table of what a student has learned of its teacher."""
    loss, agreement, error = (report.metrics.get(f"distill/{name}") for name in ("loss", "agreement", "error"))
    rows = [] if loss is None else [Row("loss", _number(loss))]
    rows += [] if agreement is None else [Row("same action", f"{agreement:.1%}")]
    return MetricTable("teacher", [*rows, *([] if error is None else [Row("relative error", f"{error:.1%}")])])


def _tables(report: IterationReport) -> list[MetricTable]:
    metrics = report.metrics
    by_ppo = not {"distill/loss", "imitate/loss"} & metrics.keys()
    recent, success = metrics.get("recent/count"), metrics.get("recent/success")
    return [
        MetricTable("recent episodes" if recent is None else f"the last {recent:,.0f} episodes", [
            Row("return", _number(metrics.get("recent/return"))),
            Row("length", _number(metrics.get("recent/length"))),
            *([] if success is None else [Row("success rate", _number(success))]),
        ]),
        MetricTable("this rollout", [
            *([] if not by_ppo else [
                Row("KL", _number(metrics.get("policy/kl"))),
                Row("clip fraction", _number(metrics.get("policy/clip_fraction"))),
            ]),
            Row("episode return", _number(metrics.get("rollout/return"))),
            Row("episode length", _number(metrics.get("rollout/length"))),
            Row("reward per step", _number(metrics.get("rollout/reward"))),
            Row("time", f"{sum(report.seconds.values()):.2f} s"),
        ]),
        MetricTable("the run", [
            *([] if report.phase is None else [Row("phase", report.phase.removeprefix("Phase").replace("-", " ", 1))]),
            Row("steps", f"{report.steps:,}"),
            Row("total steps", f"{report.total_steps:,}"),
            Row("episodes", f"{report.episodes:,}"),
            Row("rollouts", f"{report.iteration:,}"),
            Row("learning rate", _number(metrics.get("optim/learning_rate"))),
            *([] if not by_ppo else [Row("clip range", _number(metrics.get("optim/clip_range")))]),
        ]),
    ]


def _health_line(report: IterationReport, progress: Progress) -> RenderableType:
    """Shows the newest checkpoint in dim text, and counters of failures that are not zero in bold."""
    line = Text(f"checkpoint {progress.checkpoint}", "dim")
    counted = {name.removeprefix("health/"): value for name, value in report.metrics.items() if name.startswith("health/")}
    trouble = {name: count for name, count in {**counted, "skipped updates": progress.skipped}.items() if count}
    for name, count in trouble.items():
        line.append(f"   {name.replace('_', ' ')} {count:,.0f}", "bold yellow")
    return line if trouble else line.append("   no trouble")


def _share(report: IterationReport) -> float:
    return min(1.0, report.steps / report.total_steps)  # the last rollout may end beyond the total


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def _clock(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    days, rest = divmod(round(seconds), 24 * 3600)
    return f"{days} d {rest // 3600} h" if days else str(timedelta(seconds=rest))
