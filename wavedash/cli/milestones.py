"""The command `milestones`, which lists the versions of a run that are kept for ever."""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Optional

import typer

if TYPE_CHECKING:
    from wavedash.runs.milestones import Milestone

commands = typer.Typer()

COLUMNS = ("milestone", "steps", "saved (UTC)", "reward", "return", "entropy", "KL", "rating")


@commands.command()
def milestones(
    run: Annotated[
        Optional[str],  # noqa: UP045 (typer reads the annotation at run time)
        typer.Argument(metavar="RUN", help="A run folder, or a folder of runs. [default: the newest run that has any]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the milestones of a run: versions that are kept for ever."""
    from wavedash.runs.find import others_with_milestones, run_with_milestones
    from wavedash.runs.fork import origin_of
    from wavedash.runs.milestones import HOW
    from wavedash.runs.typed import typed

    found = run_with_milestones(run)
    listed, broken = found.milestones.listed()
    known = sorted(listed, key=lambda one: (one.checkpoint.step, one.name))
    origin = origin_of(found)
    if as_json:
        typer.echo(json.dumps({"run": str(found.path), "forked_from": origin, "milestones": [one.facts() for one in known],
                               "damaged": [str(error) for error in broken]}, indent=2))
        return
    typer.echo(str(found.path))
    if origin is not None:
        typer.echo(f"went on from milestone {origin['milestone']} of {origin['run']}")
    typer.echo("\n".join(_table(known)) if known else f"no milestones yet. {HOW}")
    for error in broken:
        typer.secho(f"not readable: {error}", fg="yellow", err=True)
    if known:
        name = known[-1].full_name
        typer.echo(f"\nplay:  wavedash eval {typed(f'{found.path}/milestones/{name}')}\n"
                   f"go on: wavedash resume {typed(found.path)} --milestone {typed(name)}")
    for other in others_with_milestones(found, run):
        typer.echo(f"more:  wavedash milestones {typed(other.path)}")


def _table(known: Sequence[Milestone]) -> list[str]:
    """The lines of the table: the name to the left, numbers to the right."""
    rows = [COLUMNS, *(_row(milestone) for milestone in known)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return ["  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))])
            for row in rows]


def _row(milestone: Milestone) -> tuple[str, ...]:
    facts = milestone.facts()
    saved = "-" if facts["time"] is None else facts["time"].replace("T", " ").removesuffix("Z")
    numbers = (_number(facts[key]) for key in ("mean_reward", "mean_return", "entropy", "kl"))
    return milestone.full_name, f"{facts['steps']:,}", saved, *numbers, _rating(facts["rating"], facts["steps"])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _rating(rating: Mapping[str, float | None] | None, steps: int) -> str:
    """The rating with its interval; of an earlier version, with the step at which that was rated."""
    if rating is None or (elo := rating.get("elo")) is None:
        return "-"
    low, high, rated = (rating.get(name) for name in ("low", "high", "steps"))
    interval = "" if low is None or high is None else f" ({low:.0f} to {high:.0f})"
    return f"{elo:.0f}{interval}" + ("" if rated is None or rated == steps else f" at {rated:,.0f}")
