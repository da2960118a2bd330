"""Commands `config show` and `config check`."""
from __future__ import annotations

import typer

from wavedash.cli.arguments import Overrides, Source, Trust

commands = typer.Typer(help="Looks at a configuration without running it.", no_args_is_help=True)


@commands.command(no_args_is_help=True)
def show(source: Source, overrides: Overrides = None) -> None:
    """Print every option with its value and what it does; the output is itself a valid file."""
    from wavedash.config_file import describe_config, load_config

    typer.echo(describe_config(load_config(source, overrides or [])), nl=False)


@commands.command(no_args_is_help=True)
def check(source: Source, overrides: Overrides = None, trust: Trust = False) -> None:
    """Say whether a configuration is valid, and if not, what is wrong with it.

    The environment is made and stepped once, and the policy is built, as `train` does it.
    """
    from wavedash.runs.trust import read_config

    config = read_config(source, overrides or [], trust)  # before torch is loaded: a typing mistake is answered at once
    from wavedash.preflight import check_run

    chosen = check_run(config, trust)
    typer.echo(f"{source}: valid; trains {config.env.title} for {config.total_steps:,} steps")
    if chosen:
        typer.echo(f"auto, on this machine: {chosen}")
