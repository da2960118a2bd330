"""All commands, in the order in which `wavedash --help` lists them.

To add a command, write a function in the file of its family. A new family is a file with a `typer.Typer` and a line here: with
a name its commands are called `wavedash NAME COMMAND`, without one `wavedash COMMAND`.
"""
from __future__ import annotations

from typing import Annotated

import typer

from wavedash import __version__
from wavedash.cli import (
    benchmarks,
    champion,
    config,
    curves,
    evaluation,
    export,
    imitate,
    league,
    live,
    machine,
    milestones,
    page,
    page_export,
    replays,
    rlbot,
    rocket,
    training,
)

app = typer.Typer(
    help="Trains game-playing and walking agents with PPO.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: rich alone would double the time until it shows
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(training.commands)
app.add_typer(live.commands)
app.add_typer(page.commands)
app.add_typer(milestones.commands)
app.add_typer(curves.commands)
app.add_typer(evaluation.commands)
app.add_typer(export.commands, name="export")
app.add_typer(league.commands)
app.add_typer(machine.commands)
app.add_typer(benchmarks.commands)
app.add_typer(page_export.commands, name="page")
app.add_typer(config.commands, name="config")
app.add_typer(rocket.commands, name="rocket")
app.add_typer(champion.commands, name="champion")
app.add_typer(rlbot.commands, name="rlbot")
app.add_typer(replays.commands, name="replays")
app.add_typer(imitate.commands, name="imitate")


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"wavedash {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options that come before the command."""
