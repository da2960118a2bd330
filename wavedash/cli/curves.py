"""The command `curves`, which draws the metrics of a run with its phases and changes."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

commands = typer.Typer()


@commands.command()
def curves(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder, or a folder of runs (its newest).")],
    metrics: Annotated[
        Optional[list[str]],  # noqa: UP045 (typer reads the annotation at run time)
        typer.Argument(metavar="METRIC", help="Names as in metrics.jsonl. [default: return, rating, touches, goals, entropy]"),
    ] = None,
    out: Annotated[Path, typer.Option(help="The picture to write, an SVG.")] = Path("curves.svg"),
) -> None:
    """Draw the curves of a run, with its phases and the changes that were made to it while it ran."""
    from wavedash.errors import UserError
    from wavedash.report.curves import Curves, draw
    from wavedash.runs.durable import replace_file
    from wavedash.runs.find import run_at

    picture = draw(Curves.read(run_at(run).path), metrics or ())
    try:
        replace_file(out, picture.encode())
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror or error}; name another file by --out") from error
    typer.echo(f"wrote {out}: a browser shows it")
