"""Command `imitate record`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from wavedash.cli.arguments import Deterministic, SimulatorName, StartsName, Trust
from wavedash.errors import UserError

commands = typer.Typer(help="Records demonstrations to learn from, see docs/imitation.md.", no_args_is_help=True)


@commands.callback()
def family() -> None:
    """Keeps `record` a command of its own: a family of one would be the command."""


@commands.command(no_args_is_help=True)
def record(
    player: Annotated[str, typer.Argument(metavar="PLAYER", help="A run, a checkpoint or a folder with a policy; in Rocket "
                                                                 "League also champion, chaser or your own as module:Class.")],
    out: Annotated[Path, typer.Argument(metavar="FILE", help="The .safetensors file to write.")],
    games: Annotated[int, typer.Option("--games", "--episodes", min=1, help="Games or episodes to play.")] = 100,
    against: Annotated[
        Optional[str],  # noqa: UP045 (typer reads the annotation at run time)
        typer.Option(metavar="PLAYER", help="Rocket League: whom it plays against; only PLAYER's controls are then learned "
                                            "from. [default: itself]"),
    ] = None,
    simulator: Annotated[SimulatorName, typer.Option(help="Rocket League: warp or rocketsim.")] = SimulatorName.WARP,
    starts: Annotated[StartsName, typer.Option(help="Rocket League: how games begin.")] = StartsName.KICKOFF,
    deterministic: Deterministic = True,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other games.")] = 1,
    trust: Trust = False,
) -> None:
    """Play a policy and write what it sees and does, for imitate.data=FILE."""
    from wavedash.envs.kinds import kind_of
    from wavedash.imitate.record import record_episodes
    from wavedash.league.players import find_entrant
    from wavedash.loading import load_run
    from wavedash.runs.folder import RunError

    if simulator is SimulatorName.BOTH:
        raise UserError("--simulator takes warp or rocketsim here: each file is of one of them")
    try:
        run = None if against is not None else load_run(player, trust=trust)
    except RunError:
        run = None
    if run is not None and kind_of(run.config.env).team_size(run.config.env) is None:
        typer.echo(str(record_episodes(run, out, games, deterministic, seed)))
        return
    from wavedash.league.record import record_games

    opponent = None if against is None else find_entrant(against, trust)
    typer.echo(str(record_games(find_entrant(player, trust), opponent, out, games, simulator.value,
                                starts is StartsName.TASK, deterministic, seed)))
