"""Commands about RLBot, the community's match runner: `rlbot serve`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from wavedash.cli.arguments import Deterministic, Record, Recordings, Trust

commands = typer.Typer(help="Plays with bots of RLBot, the community's match runner.", no_args_is_help=True)


@commands.callback()
def family() -> None:
    """Keeps `serve` a command of its own, as long as it is the only one."""


@commands.command(no_args_is_help=True)
def serve(
    blue: Annotated[str, typer.Argument(metavar="BLUE", help="The bot.toml of an RLBot v5 bot, or a player as in `wavedash "
                                                             "match`; A+B: one for each car.")],
    orange: Annotated[str, typer.Argument(metavar="ORANGE", help="Its opponent.")],
    matches: Annotated[int, typer.Option(min=1, help="Matches, one after the other.")] = 1,
    minutes: Annotated[float, typer.Option(min=0.05, max=60, help="Minutes on the clock of a match.")] = 5.0,
    overtime: Annotated[
        float, typer.Option(min=0, max=60, help="Longest overtime in minutes; without a goal it is a draw."),
    ] = 5.0,
    countdown: Annotated[float, typer.Option(min=0, help="Seconds before a kick-off.")] = 3.0,
    size: Annotated[
        Optional[int],  # noqa: UP045 (typer reads the annotation at run time)
        typer.Option(min=1, max=4, show_default=False, help="Cars per team. [default: as the first trained policy has it]"),
    ] = None,
    real_time: Annotated[
        bool, typer.Option("--real-time", help="120 packets a second. Otherwise in lockstep: as fast as the bots answer.")
    ] = False,
    latency: Annotated[int, typer.Option(min=0, max=12, help="Ticks from a packet to the effect of its answer.")] = 1,
    patience: Annotated[float, typer.Option(min=0.01, help="Seconds that a bot has for an answer, in lockstep.")] = 1.0,
    start: Annotated[float, typer.Option(min=1, help="Seconds that bots have to become ready.")] = 60.0,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one, which started bots are told. RLBot's own is "
                                                             "23234, for bots that you start by hand.")] = 0,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Append the results to this games.csv.")] = Path("games.csv"),
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other kick-offs.")] = 1,
    deterministic: Deterministic = True,
    trust: Trust = False,
    record: Record = None,
    recordings: Recordings = None,
) -> None:
    """Play matches of RLBot bots, without the game.

    Starts the bots by their bot.toml and speaks the protocol of RLBot v5 with them, on this machine alone. RocketSim is their
    game.
    """
    from wavedash.cli.league import find_entrants
    from wavedash.cli.progress import Shown
    from wavedash.cli.recorded import tell_recorded
    from wavedash.league.served import USUAL_PORT, Serving, serve_matches, started_by_hand
    from wavedash.recordings.order import Order
    from wavedash.rlbot.server.program import Patience
    from wavedash.runs.folder import RECORDINGS, runs_root

    order = Order.read(record, recordings, runs_root() / RECORDINGS)
    serving = Serving(matches, minutes, overtime, countdown, seed, deterministic, latency, real_time, port,
                      Patience(start=start, answer=patience), order)
    shown, entrants = Shown(), find_entrants([blue, orange], trust, size)
    for bot in started_by_hand(entrants):
        typer.echo(f"{bot.name} has no run_command: start it yourself within {start:g} s of every match. It finds the server "
                   f"{'by itself' if port == USUAL_PORT else f'if RLBOT_SERVER_PORT is {port} in its environment'}", err=True)
    for report in serve_matches(entrants, size, serving, out, shown):
        shown.end()
        typer.echo(report)
    tell_recorded(order)
