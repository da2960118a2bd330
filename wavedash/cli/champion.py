"""Commands about the policies that ship: `champion show` for everybody, `champion pack`, `champion card` and `champion
reference` for maintainers."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

if TYPE_CHECKING:
    from wavedash.league.card import PlayingCard
    from wavedash.walk.evaluate.card import WalkingCard

commands = typer.Typer(help="Looks at the trained policies that ship, and packs one.", no_args_is_help=True)

Mode = Annotated[
    str, typer.Argument(metavar="MODE", help="The size of teams, such as 1v1; or walk or walk-see, for one that walks.")
]


@commands.command()
def show(mode: Mode = "1v1") -> None:
    """Print the card of a champion: how it was trained, and how it plays against others or walks."""
    from wavedash import champions
    from wavedash.champions.pack import card_of

    typer.echo(str(card_of(mode).read(champions.champion_folder(f"{champions.NAME}-{mode}"))))


@commands.command(no_args_is_help=True)
def pack(
    source: Annotated[str, typer.Argument(metavar="RUN", help="A run, a checkpoint or a folder with a policy.")],
    mode: Mode,
    training: Annotated[
        Path, typer.Option(metavar="FILE", help="A YAML list of the runs that trained it: command, steps, gpu, gpu_minutes.")
    ],
) -> None:
    """Make a policy the champion that ships, with a card that has no results yet."""
    from wavedash import champions
    from wavedash.champions.pack import pack

    typer.echo(str(pack(source, mode, training)))
    if mode in champions.WALKERS:
        typer.echo(f"\nnext, its card:\n  wavedash eval champion-{mode} --json walk.json\n"
                   f"  wavedash champion card {mode} --walked walk.json")
        return
    typer.echo("\nnext, its games and its card:\n"
               f"  wavedash tournament champion-{mode} idle random chaser defender RUNG ... --simulator both --games 400 "
               f"--seed 11 --no-reference --out games.csv\n  wavedash champion card {mode} --games games.csv\n"
               "  wavedash champion reference games.csv --rung RUNG ...")


@commands.command(no_args_is_help=True)
def card(
    mode: Mode,
    games: Annotated[
        Optional[Path],  # noqa: UP045 (typer reads the annotation at run time)
        typer.Option(metavar="FILE", show_default=False, help="games.csv of a tournament in which the champion played."),
    ] = None,
    walked: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="FILE", show_default=False, help="What wavedash eval champion-walk --json has written."),
    ] = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic/--stochastic", help="How the policies of that tournament took their actions.")
    ] = True,
) -> None:
    """Write on the card of a champion how it plays, from the games of a tournament, or how it walks."""
    from wavedash import champions
    from wavedash.errors import UserError

    folder = champions.champion_folder(f"{champions.NAME}-{mode}")
    made: PlayingCard | WalkingCard
    if mode in champions.WALKERS:
        from wavedash.walk.evaluate.card import WalkingCard

        if walked is None or games is not None:
            raise UserError(f"the card of champion-{mode} is made of what wavedash eval --json has written: --walked FILE")
        made = WalkingCard.read(folder).with_walks(walked)
    else:
        from wavedash.league.card import PlayingCard
        from wavedash.league.games import GamesFile

        if games is None or walked is not None:
            raise UserError(f"the card of champion-{mode} is made of the games of a tournament: --games FILE")
        made = PlayingCard.read(folder).with_games(GamesFile(games).read(), deterministic)
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
