"""Commands that measure trained policies and show them."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from wavedash.cli.arguments import Deterministic, Record, Recordings, SimulatorName, StartsName, Trust
from wavedash.cli.progress import Shown
from wavedash.cli.recorded import tell_recorded
from wavedash.errors import UserError

if TYPE_CHECKING:
    from wavedash.recordings.order import Order

commands = typer.Typer()


@commands.command("eval", no_args_is_help=True)
def evaluate(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="A run folder. Several are measured one by one, and "
                                                                     "compared.")],
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
    terrain: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="NAME,...", help="Walking: kinds of terrain, such as stairs_up,stones. [default: the run's]"),
    ] = None,
    levels: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="NUMBER,...", help="Walking: levels of the terrain, such as 0,5,9. [default: all]"),
    ] = None,
    noisy: Annotated[bool, typer.Option("--noisy", help="Walking: sensors make the errors of real ones.")] = False,
    pushes: Annotated[bool, typer.Option("--pushes", help="Walking: robots are pushed now and then.")] = False,
    speed: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(show_default=False, help="Walking: m/s that robots are told to walk. [default: 0.5]"),
    ] = None,
    seconds: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(show_default=False, help="Walking: how long. [default: as long as 80 % of the speed needs for the track]"),
    ] = None,
    json: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="FILE", help="Write everything that was measured to this file as well."),
    ] = None,
    record: Record = None,
    recordings: Recordings = None,
    trust: Trust = False,
) -> None:
    """Measure a trained policy over fresh episodes."""
    own: dict[str, Any] = {
        "random": random or None, "terrain": _listed(terrain), "levels": _numbers(levels), "noisy": noisy or None,
        "pushes": pushes or None, "speed": speed, "seconds": seconds,
    }
    if against is not None and random:
        raise UserError("--random plays the run's own task; for games against random actions use --against random")
    if against is not None:
        from wavedash.evaluate.against import play_against

        refused = [name for name, value in {**own, "json": json}.items() if value is not None]
        if refused or len(runs) > 1:
            raise UserError(f"{f'--{refused[0]}' if refused else 'more than one RUN'} does not go with --against PLAYER")
        order, progress = _order(runs[0], record, recordings), Shown()
        found = play_against(runs[0], against, simulator.value if simulator else None, episodes, deterministic,
                             own_starts=starts is StartsName.TASK, trust=trust, progress=progress, record=order)
        progress.end()
        typer.echo(str(found))
        tell_recorded(order)
        return
    if simulator is not None or starts is not StartsName.KICKOFF:
        raise UserError("--simulator and --starts go with --against PLAYER; without it a run plays its own task")
    if json is not None and not Path(json).absolute().parent.is_dir():
        raise UserError(f"--json {json}: there is no folder {Path(json).absolute().parent}")
    from wavedash.evaluate.measure import measure, side_by_side

    orders = {run: _order(run, record, recordings) for run in runs}
    progress, results = Shown(), {}
    for run in runs:
        results[run] = measure(run, episodes, deterministic, trust=trust, progress=progress(run, "the time"),
                               record=orders[run], **own)
    progress.end()
    typer.echo(side_by_side(results))
    if json is not None:
        _write_json(Path(json), [result.plain() for result in results.values()])
    for order in orders.values():
        tell_recorded(order)


def _order(run: str, record: str | None, folder: Path | None) -> Order | None:
    """Returns what is to be recorded of a run, by default into its own folder."""
    if record is None and folder is None:
        return None
    from wavedash.recordings.order import Order
    from wavedash.runs.find import resolve_policy
    from wavedash.runs.folder import recordings_folder

    return Order.read(record, folder, recordings_folder(resolve_policy(run).home))


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _numbers(text: str | None) -> list[int] | None:
    try:
        return None if text is None else [int(number) for number in _listed(text) or ()]
    except ValueError:
        raise UserError(f"--levels takes whole numbers such as 0,5,9, not {text!r}") from None


def _write_json(file: Path, results: list[dict[str, Any]]) -> None:
    """Writes one result, or a list of several."""
    import json

    text = json.dumps(results[0] if len(results) == 1 else results, indent=1)
    try:
        file.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}") from error


@commands.command(no_args_is_help=True)
def render(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder or a checkpoint of a walking robot.")],
    video: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="FILE", help="A name.mp4 or name.gif. [default: a window, where there is a display]"),
    ] = None,
    recording: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="FILE", help="Instead: a name.wdr, which the page plays (docs/watch.md)."),
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

    if recording is not None and video is not None:
        raise UserError("a walk is written either as --video or as --recording: name one of them")
    loaded = load_run(run, trust=trust)
    file = video if recording is None else recording
    typer.echo(kind_of(loaded.config.env).film(loaded, None if file is None else Path(file), terrain=terrain, level=level,
                                               seconds=seconds, seed=seed, recording=recording is not None))
