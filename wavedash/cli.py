"""The command line: one small function per command, each a call into the library.

Nothing heavy is imported here. A command imports what it needs when it runs, so that `--help` and `config` answer at once.
"""
from __future__ import annotations

import difflib
import importlib
import traceback
from pathlib import Path
from typing import Annotated, Optional

import typer

from wavedash import __version__, bench
from wavedash.errors import UserError

app = typer.Typer(
    help="Trains game-playing and walking agents with PPO.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: rich alone would double the time until it shows
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
config_app = typer.Typer(help="Looks at a configuration without running it.", no_args_is_help=True)
app.add_typer(config_app, name="config")

Source = Annotated[str, typer.Argument(metavar="PRESET|FILE", help="A preset such as cartpole, or a YAML file.")]
Overrides = Annotated[
    Optional[list[str]],  # noqa: UP045 (typer reads the annotation at run time)
    typer.Argument(metavar="KEY=VALUE", help="Options to change, such as ppo.learning_rate=1e-4."),
]


def main() -> None:
    """Run the command line; a mistake of the user's ends as a message, not as a traceback."""
    try:
        app()
    except UserError as error:
        if error.shows_cause and error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
        typer.secho(f"error: {error}", fg="red", err=True)
        raise SystemExit(2) from None


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
) -> None:
    """Train a preset or a YAML file in a new run folder under runs/."""
    from wavedash.config_file import load_config, smoke_overrides

    changes = overrides or []
    config = load_config(source, changes)  # before torch is loaded: a typing mistake is answered at once
    if smoke:
        changes = [*smoke_overrides(config), *changes]
    from wavedash.training import train

    raise typer.Exit(train(source, *changes))


@app.command()
def resume(
    run_and_overrides: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(metavar="RUN KEY=VALUE", help="A run folder (default: the newest run), options to change."),
    ] = None,
) -> None:
    """Go on with a run exactly where it stopped."""
    words = run_and_overrides or []
    run = words.pop(0) if words and "=" not in words[0] else None
    from wavedash.training import resume

    raise typer.Exit(resume(run, *words))


@app.command("eval", no_args_is_help=True)
def evaluate(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder.")],
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to play. More: a narrower interval.")] = 100,
    deterministic: Annotated[
        bool, typer.Option("--deterministic/--stochastic", help="Take the likeliest action, or sample as in training.")
    ] = True,
) -> None:
    """Measure a trained policy over fresh episodes."""
    from wavedash.evaluation import evaluate

    typer.echo(str(evaluate(run, episodes=episodes, deterministic=deterministic)))


@config_app.command(no_args_is_help=True)
def show(source: Source, overrides: Overrides = None) -> None:
    """Print every option with its value and what it does; the output is itself a valid file."""
    from wavedash.config_file import describe_config, load_config

    typer.echo(describe_config(load_config(source, overrides or [])), nl=False)


@config_app.command(no_args_is_help=True)
def check(source: Source, overrides: Overrides = None) -> None:
    """Say whether a configuration is valid, and if not, all that is wrong with it."""
    from wavedash.config_file import load_config

    config = load_config(source, overrides or [])
    typer.echo(f"{source}: valid; trains {config.env.id or config.env.factory} for {config.total_steps:,} steps")


@app.command()
def doctor() -> None:
    """Check this machine: what is there, what is missing, what to do about it."""
    from wavedash.doctor import examine

    for finding in examine():
        typer.secho(f"{finding.state:>4}  ", fg="green" if finding.state == "ok" else "yellow", nl=False)
        typer.echo(f"{finding.subject:<12} {finding.detail}")
        if finding.advice:
            typer.echo(f"{'':>19}-> {finding.advice}")


def _benchmarks() -> list[str]:
    """Modules with a `main`; found by reading, because importing them would load torch."""
    files = [file for folder in bench.__path__ for file in Path(folder).glob("*.py")]
    return sorted(file.stem for file in files if "\ndef main(" in file.read_text(encoding="utf-8"))


@app.command("bench", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run_benchmark(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which one; without a name, all names are listed.")] = "",
) -> None:
    """Run a benchmark; what follows its name is passed on to it."""
    names = _benchmarks()
    if not name:
        typer.echo("\n".join(names))
    elif name in names:
        raise typer.Exit(importlib.import_module(f"wavedash.bench.{name}").main(context.args) or 0)
    else:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"benchmarks are: {', '.join(names)}"
        raise UserError(f"no benchmark is named '{name}'; {hint}")
