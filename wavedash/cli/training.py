"""Commands that train: `train` and `resume`."""
from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from wavedash.cli.arguments import Overrides, Source, Trust
from wavedash.cli.ctrl_c import end_at_ctrl_c

if TYPE_CHECKING:
    from wavedash.web.beside import PageBeside

commands = typer.Typer()

Page = Annotated[
    bool, typer.Option("--page", help="Show the run in the browser while it trains; the address is printed. See `watch`.")
]


@commands.command(no_args_is_help=True)
def train(
    source: Source,
    overrides: Overrides = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="Only 1,000 steps, to see that everything works.")] = False,
    resume: Annotated[
        Optional[str],  # noqa: UP045 (typer reads the annotation at run time)
        typer.Option(metavar="auto|RUN", show_default=False,
                     help="auto: go on with a milestone that you choose from a list, where there is a terminal; else with the "
                          "newest run of this name that fits and is not finished; else begin a new one. Or the path of a run "
                          "or milestone to go on with."),
    ] = None,
    trust: Trust = False,
    stop_is_success: Annotated[
        bool, typer.Option("--stop-is-success", help="Exit with 0 also when a signal (Ctrl-C) has saved and stopped the run.")
    ] = False,
    page: Page = False,
) -> None:
    """Train a preset or a YAML file in a new run folder under runs/, or go on with a run of it (--resume auto)."""
    end_at_ctrl_c()
    from wavedash.config_file import smoke_overrides
    from wavedash.runs.trust import read_config

    changes = overrides or []
    config = read_config(source, changes, trust)  # before torch is loaded: a typing mistake is answered at once
    if smoke:
        changes = [*smoke_overrides(config), *changes]
    beside = _page(resume, trust) if page else None
    from wavedash.training import train

    _print_address(beside)
    code = train(source, *changes, trust=trust, resume=resume)
    raise typer.Exit(0 if stop_is_success else code)


@commands.command()
def resume(
    run_and_overrides: Annotated[
        Optional[list[str]],  # noqa: UP045 (typer reads the annotation at run time)
        typer.Argument(metavar="RUN KEY=VALUE", help="A run folder (default: the newest unfinished run), options to change."),
    ] = None,
    milestone: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="NAME", show_default=False,
                     help="Go on from this milestone (40M, 1.5B, 40000000) in a new run folder; RUN stays as it is."),
    ] = None,
    trust: Trust = False,
    page: Page = False,
) -> None:
    """Go on with a run exactly where it stopped."""
    end_at_ctrl_c()
    words = run_and_overrides or []
    run = words.pop(0) if words and "=" not in words[0] else None
    beside = _page(run, trust) if page else None
    from wavedash.training import resume

    _print_address(beside)
    raise typer.Exit(resume(run, *words, trust=trust, milestone=milestone))


def _page(run: str | None, trust: bool) -> PageBeside | None:
    """Starts the page, in the first of the processes that train. It gets ready while torch is imported here, and ends with this
    process. `run`: what is gone on with, which may be outside of the folder of all runs."""
    if os.environ.get("RANK", "0") != "0":
        return None
    from wavedash.runs.folder import RunFolder
    from wavedash.web.beside import PageBeside

    named = Path(run or "nowhere").absolute()
    return PageBeside(extra=next((path for path in (named, *named.parents) if RunFolder.is_run(path)), None), trust=trust)


def _print_address(page: PageBeside | None) -> None:
    """Prints where the page is, with the token: to the terminal only, because others may read the log of a run. A browser opens
    it, where there is one."""
    if page is not None and (link := page.wait()) is not None:
        from wavedash.web.browser import open_soon

        typer.echo(f"watch it at {link}")
        open_soon(link)
