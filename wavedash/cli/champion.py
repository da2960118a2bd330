"""Commands about the policies that ship: `champion show` for everybody, `champion pack`, `champion card` and `champion
reference` for maintainers."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

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
               f"--seed 11 --no-reference --out games.csv\n  wavedash champion card {mode} --games games.csv\n"
               "  wavedash champion reference games.csv --rung RUNG ...")


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


@commands.command(no_args_is_help=True)
def reference(
    games: Annotated[Path, typer.Argument(metavar="GAMES.csv", help="The games of a tournament of players that never change.")],
    rung: Annotated[
        Optional[list[Path]],  # noqa: UP045 (typer reads the annotation at run time)
        typer.Option(metavar="FOLDER", show_default=False, help="A policy that does not ship, known by its checksum."),
    ] = None,
) -> None:
    """Make the reference results that ship, which everybody's ratings use, from the games of a tournament."""
    from wavedash.league.games import GamesFile
    from wavedash.league.make_reference import make_reference

    rows, left_out = make_reference(GamesFile(games).read(), rung or [])
    for row in rows:
        typer.echo(f"{row.simulator:<10} {row.player} against {row.opponent}: {row.won} - {row.drawn} - {row.lost}")
    if left_out:
        typer.echo(f"left out, because they are no scripts, champions or rungs: {', '.join(left_out)}")
