"""Command `bench`, which runs what is in `wavedash/bench`."""
from __future__ import annotations

import difflib
import importlib
from pathlib import Path
from typing import Annotated

import typer

from wavedash import bench
from wavedash.errors import UserError

commands = typer.Typer()


@commands.command("bench", context_settings={"allow_extra_args": True, "ignore_unknown_options": True,
                                             "help_option_names": []})
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


def _benchmarks() -> list[str]:
    """Files and folders of `wavedash/bench` that define `main`. They are read, because importing them would load torch."""
    folders = [Path(folder) for folder in bench.__path__]
    files = {file.stem: file for folder in folders for file in folder.glob("*.py")}
    files |= {file.parent.name: file for folder in folders for file in folder.glob("*/__init__.py")}
    return sorted(name for name, file in files.items() if "\ndef main(" in file.read_text(encoding="utf-8"))
