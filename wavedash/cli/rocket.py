"""Commands `rocket actions` and `rocket show`."""
from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Optional

import typer

from wavedash.cli.arguments import Deterministic, Trust

commands = typer.Typer(help="Looks at a Rocket League task and at those who play it.", no_args_is_help=True)


class ViewerName(StrEnum):
    """The choices of `wavedash rocket show --viewer`."""

    ROCKETSIMVIS = "rocketsimvis"
    RLVISER = "rlviser"


@commands.command()
def actions(
    options: Annotated[
        Optional[list[str]],  # noqa: UP045 (typer reads the annotation at run time)
        typer.Argument(metavar="KEY=VALUE", help="Options of the parser, such as bins=5."),
    ] = None,
    parser: Annotated[
        str, typer.Option(help="lookup_table, multi_discrete, continuous, or your own as module:Class.")
    ] = "lookup_table",
) -> None:
    """Print which controls an action parser covers, and warn of what a bot would miss."""
    from wavedash.rocket.actions.coverage import show_coverage

    show_coverage(parser, options or [])


@commands.command(no_args_is_help=True)
def show(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder or a checkpoint.")],
    viewer: Annotated[ViewerName, typer.Option(help="The window, see docs/watch.md.")] = ViewerName.ROCKETSIMVIS,
    speed: Annotated[float, typer.Option(min=0, help="1: as fast as the game, 2: twice that, 0: as fast as possible.")] = 1.0,
    episodes: Annotated[
        Optional[int], typer.Option(min=1, help="Then stop. [default: at Ctrl-C]", show_default=False)  # noqa: UP045
    ] = None,
    deterministic: Deterministic = True,
    trust: Trust = False,
) -> None:
    """Watch a trained policy play its task."""
    from wavedash.rocket.bridges.show import show_run

    show_run(run, viewer.value, speed, episodes, deterministic, trust)
