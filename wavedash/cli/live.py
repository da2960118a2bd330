"""The command that changes a run while it runs: `set`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

commands = typer.Typer()


@commands.command("set", no_args_is_help=True)
def set_(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The folder of a run that runs, or a folder of runs.")],
    changes: Annotated[
        Optional[list[str]],  # noqa: UP045 (typer reads the annotation at run time)
        typer.Argument(metavar="KEY=VALUE|ORDER", help="Settings to change, such as ppo.learning_rate=1e-4; or orders: "
                                                       "save, milestone, milestone=NAME, phase=next, pause, continue, stop. "
                                                       "Without any: what may change with its values, and the run's orders."),
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds to wait for the run's answer.")] = 60.0,
) -> None:
    """Change settings of a run while it runs, keep a milestone of it, or save, pause, continue or stop it."""
    from wavedash.errors import UserError
    from wavedash.runs.ask import read_request, running
    from wavedash.runs.inbox import ask
    from wavedash.runs.typed import typed

    request, folder = read_request(changes or []), running(Path(run))
    try:
        answer = ask(folder.path, request, timeout)
    except OSError as error:
        raise UserError(f"cannot write into {folder.path}: {error.strerror or error}") from None
    if answer is None:
        raise UserError(f"{folder.path} did not answer within {timeout:g} seconds, and nothing was changed. It may be busy "
                        f"with a long iteration (wait longer: --timeout {10 * timeout:g}), or it is not running any more "
                        f"({folder.holder} trained it last): then go on with `wavedash resume {typed(folder.path)}` and the "
                        "same settings")
    if not answer.done:
        raise UserError(answer.said)
    typer.echo(answer.said)
