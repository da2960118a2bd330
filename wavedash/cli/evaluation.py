"""Commands for trained policies: `eval` measures one, `export` writes it as a file."""
from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Optional

import typer

from wavedash.cli.arguments import Deterministic, SimulatorName, Trust
from wavedash.cli.progress import Shown
from wavedash.errors import UserError

commands = typer.Typer()


class StartsName(StrEnum):
    """The choices of `wavedash eval --starts`."""

    KICKOFF = "kickoff"
    TASK = "task"


class ExportFormat(StrEnum):
    """The choices of `wavedash export --format`."""

    ONNX = "onnx"
    TORCHSCRIPT = "torchscript"
    BOTH = "both"


@commands.command("eval", no_args_is_help=True)
def evaluate(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder.")],
    episodes: Annotated[
        Optional[int],  # noqa: UP045 (typer reads the annotation at run time)
        typer.Option("--episodes", "--games", min=1, show_default=False,
                     help="Episodes to play. More: a narrower interval. [default: 100, unless the environment says otherwise]"),
    ] = None,
    deterministic: Deterministic = True,
    random: Annotated[bool, typer.Option("--random", help="Play random actions as well, for comparison.")] = False,
    against: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="PLAYER", help="Rocket League: games against idle, random, chaser, defender, champion, your own "
                                            "as module:Class, or another run, checkpoint or folder with a policy; see "
                                            "docs/evaluate.md."),
    ] = None,
    simulator: Annotated[
        Optional[SimulatorName],  # noqa: UP045
        typer.Option(help="With --against. [default: the one it was trained in]", show_default=False),
    ] = None,
    starts: Annotated[StartsName, typer.Option(help="With --against: how games begin.")] = StartsName.KICKOFF,
    trust: Trust = False,
) -> None:
    """Measure a trained policy over fresh episodes."""
    if against is not None and random:
        raise UserError("--random plays the run's own task; for games against random actions use --against random")
    if against is not None:
        from wavedash.evaluate.against import play_against

        progress = Shown()
        found = play_against(run, against, simulator.value if simulator else None, episodes, deterministic,
                             own_starts=starts is StartsName.TASK, trust=trust, progress=progress)
        progress.end()
        typer.echo(str(found))
        return
    if simulator is not None or starts is not StartsName.KICKOFF:
        raise UserError("--simulator and --starts go with --against PLAYER; without it a run plays its own task")
    from wavedash.evaluate.own_task import evaluate

    typer.echo(str(evaluate(run, episodes=episodes, deterministic=deterministic, random=random, trust=trust)))


@commands.command(no_args_is_help=True)
def render(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder or a checkpoint of a walking robot.")],
    video: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="FILE", help="A name.mp4 or name.gif. [default: a window, where there is a display]"),
    ] = None,
    terrain: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="NAME", help="A kind of terrain, such as stairs_up. [default: the first of the run]"),
    ] = None,
    level: Annotated[Optional[int], typer.Option(help="Its level. [default: the hardest]")] = None,  # noqa: UP045
    seconds: Annotated[float, typer.Option(min=0.1, help="The most; less if the robot falls or reaches the end.")] = 10.0,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    trust: Trust = False,
) -> None:
    """Film a walking robot: from outside, and what its camera sees. It needs no display and no graphics card."""
    from pathlib import Path

    from wavedash.envs.kinds import kind_of
    from wavedash.loading import load_run

    loaded = load_run(run, trust=trust)
    typer.echo(kind_of(loaded.config.env).film(loaded, None if video is None else Path(video), terrain=terrain, level=level,
                                               seconds=seconds, seed=seed))


@commands.command(no_args_is_help=True)
def export(
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
