"""The command line: one small function per command, each a call into the library.

Nothing heavy is imported here. A command imports what it needs when it runs, so that `--help` and `config` answer at once.
"""
from __future__ import annotations

import atexit
import difflib
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Optional

import typer

from wavedash import __version__, bench
from wavedash.errors import UserError
from wavedash.import_path import append_current_folder

app = typer.Typer(
    help="Trains game-playing and walking agents with PPO.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: rich alone would double the time until it shows
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
config_app = typer.Typer(help="Looks at a configuration without running it.", no_args_is_help=True)
app.add_typer(config_app, name="config")
rocket_app = typer.Typer(help="Looks at a Rocket League task and at those who play it.", no_args_is_help=True)
app.add_typer(rocket_app, name="rocket")

Source = Annotated[str, typer.Argument(metavar="PRESET|FILE", help="A preset such as cartpole, or a YAML file.")]
Overrides = Annotated[
    Optional[list[str]],  # noqa: UP045 (typer reads the annotation at run time)
    typer.Argument(metavar="KEY=VALUE", help="Options to change, such as ppo.learning_rate=1e-4."),
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run the code that somebody else's run folder names. Look at it before.")
]


def main() -> None:
    """Run the command line; a mistake of the user's ends as a message, not as a traceback."""
    append_current_folder()
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # commands answer with what they have
    with _leaving(), _leaving_torchrun():
        try:
            app()
        except UserError as error:
            if error.shows_cause and error.__cause__ is not None:
                traceback.print_exception(error.__cause__)
            typer.secho(f"error: {error}", fg="red", err=True)
            raise SystemExit(2) from None


@contextmanager
def _leaving() -> Iterator[None]:
    """What was asked for by a signal has been done when a command ends; another one changes nothing. And a last line that
    nobody can read any more (a closed terminal, a pipe without a reader) is no failure."""
    try:
        yield
    finally:
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_IGN)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _ends_at_ctrl_c() -> None:
    """Until there is something to save, Ctrl-C ends the process as the system does it: at once, without a traceback of whatever
    was being imported or built."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def _leaving_torchrun() -> Iterator[None]:
    """A process that torchrun started ends as soon as it has tidied up: of those that take torch apart first, one in twenty is
    aborted by a thread that is left ("terminate called without an active exception"), and torchrun calls the run failed."""
    try:
        yield
    except SystemExit as leaving:
        if "LOCAL_RANK" not in os.environ:
            raise
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None))


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"wavedash {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Options that come before the command."""


@app.command(no_args_is_help=True)
def train(
    source: Source,
    overrides: Overrides = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="Only 1,000 steps, to see that everything works.")] = False,
    trust: Trust = False,
    stop_is_success: Annotated[
        bool, typer.Option("--stop-is-success", help="Exit with 0 also when a signal (Ctrl-C) has saved and stopped the run.")
    ] = False,
) -> None:
    """Train a preset or a YAML file in a new run folder under runs/."""
    _ends_at_ctrl_c()
    from wavedash.config_file import smoke_overrides
    from wavedash.runs.trust import read_config

    changes = overrides or []
    config = read_config(source, changes, trust)  # before torch is loaded: a typing mistake is answered at once
    if smoke:
        changes = [*smoke_overrides(config), *changes]
    from wavedash.training import train

    code = train(source, *changes, trust=trust)
    raise typer.Exit(0 if stop_is_success else code)


@app.command()
def resume(
    run_and_overrides: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(metavar="RUN KEY=VALUE", help="A run folder (default: the newest run), options to change."),
    ] = None,
    trust: Trust = False,
) -> None:
    """Go on with a run exactly where it stopped."""
    _ends_at_ctrl_c()
    words = run_and_overrides or []
    run = words.pop(0) if words and "=" not in words[0] else None
    from wavedash.training import resume

    raise typer.Exit(resume(run, *words, trust=trust))


class SimulatorName(StrEnum):
    """The choices of `wavedash eval --simulator`."""

    WARP = "warp"
    ROCKETSIM = "rocketsim"
    BOTH = "both"


class StartsName(StrEnum):
    """The choices of `wavedash eval --starts`."""

    KICKOFF = "kickoff"
    TASK = "task"


@app.command("eval", no_args_is_help=True)
def evaluate(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder.")],
    episodes: Annotated[
        int, typer.Option("--episodes", "--games", min=1, help="Episodes to play. More: a narrower interval.")
    ] = 100,
    deterministic: Annotated[
        bool, typer.Option("--deterministic/--stochastic", help="Take the likeliest action, or sample as in training.")
    ] = True,
    random: Annotated[bool, typer.Option("--random", help="Play random actions as well, for comparison.")] = False,
    against: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="PLAYER", help="Rocket League: games against idle, random, chaser, defender, your own as "
                                            "module:Class, or another run, checkpoint or folder with a policy; see "
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
        raise UserError("--random plays the run's own task; against somebody who plays at random: --against random")
    if against is not None:
        from wavedash.evaluate.against import play_against

        typer.echo(str(play_against(run, against, simulator.value if simulator else None, episodes, deterministic,
                                    own_starts=starts is StartsName.TASK, trust=trust)))
        return
    if simulator is not None or starts is not StartsName.KICKOFF:
        raise UserError("--simulator and --starts go with --against PLAYER; without it a run plays its own task")
    from wavedash.evaluate.own_task import evaluate

    typer.echo(str(evaluate(run, episodes=episodes, deterministic=deterministic, random=random, trust=trust)))


class ExportFormat(StrEnum):
    """The choices of `wavedash export --format`."""

    ONNX = "onnx"
    TORCHSCRIPT = "torchscript"
    BOTH = "both"


@app.command(no_args_is_help=True)
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


@config_app.command(no_args_is_help=True)
def show(source: Source, overrides: Overrides = None) -> None:
    """Print every option with its value and what it does; the output is itself a valid file."""
    from wavedash.config_file import describe_config, load_config

    typer.echo(describe_config(load_config(source, overrides or [])), nl=False)


@config_app.command(no_args_is_help=True)
def check(source: Source, overrides: Overrides = None, trust: Trust = False) -> None:
    """Say whether a configuration is valid, and if not, what is wrong with it.

    The environment is made and stepped once, and the policy is built, as `train` does it.
    """
    from wavedash.runs.trust import read_config

    config = read_config(source, overrides or [], trust)  # before torch is loaded: a typing mistake is answered at once
    from wavedash.preflight import check_run

    check_run(config)
    typer.echo(f"{source}: valid; trains {config.env.title} for {config.total_steps:,} steps")


@rocket_app.command()
def actions(
    options: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(metavar="KEY=VALUE", help="Options of the parser, such as bins=5."),
    ] = None,
    parser: Annotated[
        str, typer.Option(help="lookup_table, multi_discrete, continuous, or your own as module:Class.")
    ] = "lookup_table",
) -> None:
    """Print which controls an action parser covers, and warn of what a bot would miss."""
    from wavedash.rocket.actions.coverage import show_coverage

    show_coverage(parser, options or [])


class ViewerName(StrEnum):
    """The choices of `wavedash rocket show --viewer`."""

    ROCKETSIMVIS = "rocketsimvis"
    RLVISER = "rlviser"


@rocket_app.command("show", no_args_is_help=True)
def show_games(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder or a checkpoint.")],
    viewer: Annotated[ViewerName, typer.Option(help="The window, see docs/watch.md.")] = ViewerName.ROCKETSIMVIS,
    speed: Annotated[float, typer.Option(min=0, help="1: as fast as the game, 2: twice that, 0: as fast as possible.")] = 1.0,
    episodes: Annotated[
        Optional[int], typer.Option(min=1, help="Then stop. [default: at Ctrl-C]", show_default=False)  # noqa: UP045
    ] = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic/--stochastic", help="Take the likeliest action, or sample as in training.")
    ] = True,
    trust: Trust = False,
) -> None:
    """Watch a trained policy play its task."""
    from wavedash.rocket.bridges.show import show_run

    show_run(run, viewer.value, speed, episodes, deterministic, trust)


@app.command()
def doctor() -> None:
    """Check this machine: what is there, what is missing, what to do about it."""
    from wavedash.doctor import examine

    for finding in examine():
        typer.secho(f"{finding.state:>4}  ", fg="green" if finding.state == "ok" else "yellow", nl=False)
        typer.echo(f"{finding.subject:<12} {finding.detail}")
        if finding.advice:
            typer.echo(f"{'':>19}-> {finding.advice}")


@app.command()
def diagnose(
    words: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(metavar="STAGE PRESET|FILE KEY=VALUE", show_default=False,
                       help="STAGE is env, inference, update, gpu or all (default: all of cartpole)."),
    ] = None,
    rounds: Annotated[int, typer.Option(min=2, help="Measurements of each stage. More: smaller differences can be told.")] = 5,
    save: Annotated[bool, typer.Option("--save", help="Keep this measurement as the baseline.")] = False,
    baseline: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="FILE", help="Compare with this one. [default: this configuration's, in runs/.diagnose]"),
    ] = None,
    try_advice: Annotated[bool, typer.Option("--try", help="Also measure iterations with each advised setting.")] = False,
    trust: Trust = False,
) -> None:
    """Time each stage of a training iteration alone, name the bottleneck and the setting to change."""
    from wavedash.runs.trust import read_config

    stage, source, changes = _stage_and_source(words or [])
    read_config(source, changes, trust)  # before torch is loaded: a typing mistake is answered at once
    from wavedash.diagnosis.command import diagnose

    diagnose(stage, source, changes, baseline=baseline, save=save, rounds=rounds, try_advice=try_advice, trust=trust)


def _stage_and_source(words: list[str]) -> tuple[str, str, list[str]]:
    from wavedash.config_file import preset_names
    from wavedash.diagnosis import STAGES

    known = [*STAGES, *preset_names()]
    if words and "=" not in words[0] and words[0] not in known and not Path(words[0]).is_file():
        near = difflib.get_close_matches(words[0], known, n=1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise UserError(f"'{words[0]}' is neither a stage nor a preset or a file; {hint}Stages are: {', '.join(STAGES)}")
    stage = words.pop(0) if words and words[0] in STAGES else "all"
    source = words.pop(0) if words and "=" not in words[0] else "cartpole"
    return stage, source, words


def _benchmarks() -> list[str]:
    """Modules with a `main`; found by reading, because importing them would load torch."""
    files = [file for folder in bench.__path__ for file in Path(folder).glob("*.py")]
    return sorted(file.stem for file in files if "\ndef main(" in file.read_text(encoding="utf-8"))


@app.command("bench", context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
def run_benchmark(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which one; without a name, all names are listed.")] = "",
) -> None:
    """Run a benchmark; what follows its name, --help too, is passed on to it. Without a name, all are listed."""
    names = _benchmarks()
    if name in ("", "-h", "--help"):
        typer.echo("\n".join(names))
    elif name in names:
        raise typer.Exit(importlib.import_module(f"wavedash.bench.{name}").main(context.args) or 0)
    else:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"benchmarks are: {', '.join(names)}"
        raise UserError(f"no benchmark is named '{name}'; {hint}")
