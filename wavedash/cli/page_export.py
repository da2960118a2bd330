"""Commands about the page as a file: `page export` writes a run as one HTML file."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

commands = typer.Typer(help="The page as a file.", no_args_is_help=True)


@commands.callback()
def page() -> None:
    """The page of a run as a file."""


@commands.command(no_args_is_help=True)
def export(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder, or a folder of runs (its newest).")],
    out: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write, such as my-bot.html.")],
    recordings: Annotated[int, typer.Option(min=0, help="Recordings to put in at most, highlights first.")] = 10,
    points: Annotated[int, typer.Option(min=1, max=20_000, help="Points of each curve at most.")] = 1500,
    megabytes: Annotated[float, typer.Option(min=1.0, help="About how large the file may become; recordings that do not fit "
                                                           "are left out.")] = 8.0,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is no exported page.")] = False,
) -> None:
    """Write a run as one HTML file to send to somebody: curves, ladder, events, settings and recordings. It opens in any
    browser, without a server and without the internet. It names neither your machine nor you."""
    from wavedash.runs.find import run_at
    from wavedash.web.export import export_page

    typer.echo(export_page(run_at(run).path, out, recordings, points, megabytes, force))
