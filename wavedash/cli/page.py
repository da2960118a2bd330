"""Commands that show the page in the browser: `watch`."""
from __future__ import annotations

import socket
from typing import Annotated, Optional

import typer

from wavedash.cli.arguments import Trust

commands = typer.Typer()

Port = Annotated[
    Optional[int],  # noqa: UP045 (typer reads the annotation at run time)
    typer.Option("--port", min=1, max=65535, show_default=False, help="The port; default: the first free one from 8600."),
]
Host = Annotated[
    str, typer.Option("--host", help="The address to serve on. Any other than this machine's own needs --token.")
]
Token = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--token", metavar="TOKEN|auto", show_default=False,
                 help="The secret that changes need, 16 letters or more; default: a random one."),
]


@commands.command()
def watch(
    what: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(metavar="RUN | PLAYER [vs] PLAYER",
                       help="A run folder, whose newest checkpoint plays itself; or one or two players, as for match. "
                            "Default: the newest run."),
    ] = None,
    port: Port = None,
    host: Host = "127.0.0.1",
    token: Token = None,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    size: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--size", min=1, max=3, show_default=False, help="Cars of a team; default: as in training, else 1."),
    ] = None,
    simulator: Annotated[str, typer.Option("--simulator", help="rocketsim or warp.")] = "rocketsim",
    start: Annotated[str, typer.Option("--start", help="How games begin.")] = "kickoff",
    stochastic: Annotated[bool, typer.Option("--stochastic", help="Sample actions as in training.")] = False,
    trust: Trust = False,
) -> None:
    """Show runs and games in the browser: watch bots play, live or recorded, and see and steer what a run learns."""
    from wavedash.web.app import make_app
    from wavedash.web.browser import open_soon
    from wavedash.web.games import Wanted
    from wavedash.web.library import Library
    from wavedash.web.players import Players
    from wavedash.web.serve import EVERYWHERE, Served, address, bind, chosen_token

    secret = chosen_token(host, token)
    players = Players(Library(trust=trust))
    wanted = Wanted(players, what or [], size, simulator, start, not stochastic)
    bound = bind(host, port)
    served = Served(make_app(players, secret, host, wanted.run, wanted.game, wanted.who), bound)
    link = address(bound, host, secret)
    typer.echo(f"watch {wanted.title} at {link}")
    if host in EVERYWHERE:
        typer.echo(f"from other machines at {address(bound, socket.gethostname(), secret)}")
    typer.echo("Ctrl-C ends the page. Whoever has this address can watch and steer")
    if browser:
        open_soon(link)  # it is answered as soon as the server runs: its port is taken already
    served.run()
