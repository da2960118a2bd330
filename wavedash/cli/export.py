"""Commands that write a trained policy for elsewhere: `export RUN` as a file, `export rlbot RUN OUT` as a bot."""
from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from typer.core import TyperGroup

from wavedash.cli.arguments import Trust

FILE = "file"
"""The command that `wavedash export RUN` means"""


class FileByDefault(TyperGroup):
    """A group in which arguments that begin with no command of it are those of `file`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in self.get_help_option_names(ctx):
            args = [FILE, *args]
        return super().parse_args(ctx, args)


commands = typer.Typer(cls=FileByDefault, no_args_is_help=True,
                       help="Write a trained policy for elsewhere. `export RUN` is `export file RUN`.")


class ExportFormat(StrEnum):
    """The choices of `wavedash export --format`."""

    ONNX = "onnx"
    TORCHSCRIPT = "torchscript"
    BOTH = "both"


@commands.command(FILE, no_args_is_help=True)
def file_(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder or a checkpoint.")],
    format: Annotated[Optional[ExportFormat], typer.Option(help="By default what --out names, else both.")] = None,  # noqa: UP045
    out: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="FILE|FOLDER", help="A name.onnx or name.pt, or a folder. [default: export/ in the run]"),
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Played step by step beside the policy before anything is written.")] = 3,
    trust: Trust = False,
) -> None:
    """Write a trained policy as a file that plays without Wavedash."""
    from wavedash.export import export_policy

    typer.echo(str(export_policy(run, format.value if format else None, out, episodes, trust)))


@commands.command(no_args_is_help=True)
def rlbot(
    run: Annotated[str, typer.Argument(metavar="RUN|champion", help="A run folder, a checkpoint or a champion.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write; OUT.zip is written beside it.")],
    name: Annotated[Optional[str], typer.Option(help="The bot's name in the game. [default: that of the run]")] = None,  # noqa: UP045
    developer: Annotated[str, typer.Option(help="Who made it, for RLBot's GUI and the bot's id.")] = "Wavedash",
    description: Annotated[Optional[str], typer.Option(help="A sentence for RLBot's GUI.")] = None,  # noqa: UP045
    trust: Trust = False,
) -> None:
    """Write a Rocket League policy as a bot that RLBot v5 starts, see docs/rlbot.md."""
    from wavedash.rlbot.export import export_bot

    typer.echo(str(export_bot(run, out, name, developer, description, trust)))
