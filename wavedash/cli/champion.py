"""Commands about the policies that ship: `champion show` for everybody, `champion pack` and `champion card` for maintainers."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

commands = typer.Typer(help="Looks at the trained Rocket League bots that ship, and packs one.", no_args_is_help=True)

Mode = Annotated[str, typer.Argument(metavar="MODE", help="The size of teams: 1v1, 2v2 or 3v3.")]


@commands.command()
def show(mode: Mode = "1v1") -> None:
    """Print the card of a champion: how it was trained, its rating, and how it plays against others."""
    from wavedash import champions
    from wavedash.league.card import Card

    typer.echo(str(Card.read(champions.champion_folder(f"{champions.NAME}-{mode}"))))


@commands.command(no_args_is_help=True)
def pack(
    source: Annotated[str, typer.Argument(metavar="RUN", help="A run, a checkpoint or a folder with a policy.")],
    mode: Mode,
    training: Annotated[
        Path, typer.Option(metavar="FILE", help="A YAML list of the runs that trained it: command, steps, gpu, gpu_minutes.")
    ],
) -> None:
    """Make a policy the champion that ships, with a card that has no games yet."""
    from wavedash.league.champions import pack

    typer.echo(str(pack(source, mode, training)))
    typer.echo("\nnext, its games and its card:\n"
               f"  wavedash tournament champion-{mode} idle random chaser defender RUNG ... --simulator both --games 400 "
               f"--out games.csv\n  wavedash champion card {mode} --games games.csv")


@commands.command(no_args_is_help=True)
def card(
    mode: Mode,
    games: Annotated[Path, typer.Option(metavar="FILE", help="games.csv of a tournament in which the champion played.")],
    deterministic: Annotated[
        bool, typer.Option("--deterministic/--stochastic", help="How the policies of that tournament took their actions.")
    ] = True,
) -> None:
    """Write rating and goal shares of a champion on its card, from the games of a tournament."""
    from wavedash import champions
    from wavedash.league.card import Card
    from wavedash.league.games import GamesFile

    folder = champions.champion_folder(f"{champions.NAME}-{mode}")
    made = Card.read(folder).with_games(GamesFile(games).read(), deterministic)
    made.write(folder)
    typer.echo(str(made))
