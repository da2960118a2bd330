"""The tables of the bench."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.table import Table

from wavedash.bench.rlbot.lockstep import Course
from wavedash.bench.rlbot.moments import Apart, Counts
from wavedash.bench.rlbot.times import Times


def decisions(games: Mapping[str, Counts]) -> Table:
    """How many decisions of each game are the trainer's."""
    table = _table("What the bot sees, is offered and chooses, beside the trainer", "game", "ticks", "moments",
                   "observation equal", "mask equal", "action equal")
    for name, counts in games.items():
        table.add_row(name, f"{counts.ticks:,}", f"{counts.controls.total:,}",
                      *(_equal(apart) for apart in (counts.seen, counts.masks, counts.controls)))
    total = _joined(games.values())
    table.add_section()
    table.add_row("all", f"{total.ticks:,}", f"{total.controls.total:,}",
                  *(_equal(apart) for apart in (total.seen, total.masks, total.controls)))
    return table


def quantities(games: Sequence[Counts]) -> Table:
    """How often each quantity of a car is what the state has, at every tick of all games."""
    total = _joined(games)
    table = _table("What the bot knows of cars, at every tick", "quantity", "compared", "equal", "differ",
                   "mean error of these", "largest")
    for name, apart in total.cars.items():
        differ = apart.total - apart.equal
        table.add_row(name, f"{apart.total:,}", f"{apart.equal / max(apart.total, 1):.4%}", f"{differ:,}",
                      f"{apart.error / differ:.2g}" if differ else "", f"{apart.worst:.2g}" if differ else "")
    table.add_section()
    numbers = ", ".join(f"{name} {count}" for name, count in total.numbers.most_common(8)) or "none"
    table.caption = f"numbers of observations that differed: {numbers}"
    return table


def courses(races: Mapping[str, Course]) -> Table:
    """How long games with bots were those of the evaluation, bit for bit."""
    table = _table("Bots in closed loop through packets, beside the same game of our evaluation", "game", "ticks played",
                   "identical", "decisions", "goals", "first difference")
    for name, course in races.items():
        table.add_row(name, f"{course.ticks:,}", f"{course.same:,}", f"{course.decisions:,}", f"{course.goals}",
                      course.difference)
    return table


def times(answers: Mapping[str, Times], starts: Mapping[str, float], fresh: Mapping[str, float] | None = None) -> Table:
    """How long bots take to decide and to start. `fresh`: in an environment that holds nothing but what they need."""
    table = _table("Times on one core, ms: p50 and p99", "bot", "decision, CPU", "decision, wall", "any packet, CPU",
                   "start of its process, s", *(["in a fresh venv, s"] if fresh else []))
    for name, found in answers.items():
        cells = [found.quantiles(values, only) for values, only in ((found.cpu, True), (found.wall, True), (found.cpu, False))]
        table.add_row(name, *(f"{p50:.2f}  {p99:.2f}" for p50, p99 in cells), f"{starts[name]:.2f}",
                      *([f"{fresh[name]:.2f}"] if fresh else []))
    return table


def _table(title: str, first: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", caption_justify="left")
    table.add_column(first, justify="left")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _equal(apart: Apart) -> str:
    if not apart.total:
        return "no mask"
    return "all" if apart.equal == apart.total else f"{apart.equal:,} ({apart.equal / apart.total:.3%})"


def _joined(games: Iterable[Counts]) -> Counts:
    total = Counts()
    for counts in games:
        total.ticks += counts.ticks
        for ours, theirs in ((total.seen, counts.seen), (total.masks, counts.masks), (total.controls, counts.controls)):
            ours.join(theirs)
        for name, apart in counts.cars.items():
            total.cars[name].join(apart)
        total.numbers.update(counts.numbers)
    return total
