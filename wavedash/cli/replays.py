"""Commands `replays import` and `replays train-inverse`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wavedash.errors import UserError

commands = typer.Typer(help="Turns replays of Rocket League into starts and demonstrations.", no_args_is_help=True)


@commands.command("import", no_args_is_help=True)
def import_(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder with .replay files, also in folders below.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write to.")],
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0: this one, where a crash of the parser ends all.")] = 2,
    ticks: Annotated[int, typer.Option(min=1, max=60, help="Ticks between decisions of demonstrations.")] = 8,
    start_seconds: Annotated[float, typer.Option(min=0.01, help="Seconds between states to start from.")] = 0.25,
    confidence: Annotated[
        float, typer.Option(min=0, max=1, help="Least probability of every inferred control of a label.")
    ] = 0.6,
    inverse: Annotated[
        str, typer.Option(metavar="shipped|none|FILE", help="The model that infers controls replays do not carry.")
    ] = "shipped",
) -> None:
    """Import a folder of .replay files, see docs/replays.md. An import that was interrupted goes on."""
    from wavedash.replays.importing import import_folder, import_table
    from wavedash.replays.one_file import ImportSettings

    settings = ImportSettings(ticks, start_seconds, confidence, inverse)
    summary = import_folder(folder, out, settings, workers, lambda text: typer.echo(text, err=True))
    typer.echo(import_table(summary))
    if not summary["written"]:
        raise UserError(f"{folder}: nothing could be imported; the table says why")


@commands.command(no_args_is_help=True)
def train_inverse(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The .safetensors file to write.")],
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of 64 games of 8 seconds to learn from.")] = 12,
    steps: Annotated[int, typer.Option(min=1, help="Steps of gradient descent.")] = 6000,
    seed: Annotated[int, typer.Option(help="Another seed, other games.")] = 0,
) -> None:
    """Train the model that infers controls replays do not carry, and print its accuracy on games of RocketSim."""
    from wavedash.replays.inverse import save_model
    from wavedash.replays.train_inverse import train_and_measure
    from wavedash.runs.durable import prepare_file

    prepare_file(out)
    model, table = train_and_measure(rounds, steps, seed, lambda text: typer.echo(text, err=True))
    save_model(out, model)
    typer.echo(table)
