"""Commands about this machine: `doctor` says what is missing on it, `diagnose` what slows a run down on it."""
from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Optional

import typer

from wavedash.cli.arguments import Trust
from wavedash.errors import UserError

commands = typer.Typer()


@commands.command()
def doctor() -> None:
    """Check this machine: what is there, what is missing, what to do about it."""
    from wavedash.doctor import examine

    for finding in examine():
        typer.secho(f"{finding.state:>4}  ", fg="green" if finding.state == "ok" else "yellow", nl=False)
        typer.echo(f"{finding.subject:<12} {finding.detail}")
        for line in finding.table:
            typer.echo(f"{'':>19}{line}")
        if finding.advice:
            typer.echo(f"{'':>19}-> {finding.advice}")


@commands.command()
def diagnose(
    words: Annotated[
        Optional[list[str]],  # noqa: UP045 (typer reads the annotation at run time)
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

    stage, source, changes = split_words(words or [])
    read_config(source, changes, trust)  # before torch is loaded: a typing mistake is answered at once
    from wavedash.diagnosis.command import diagnose

    diagnose(stage, source, changes, baseline=baseline, save=save, rounds=rounds, try_advice=try_advice, trust=trust)


def split_words(words: list[str]) -> tuple[str, str, list[str]]:
    """The stage, the preset or file and the overrides of `wavedash diagnose`. The first two may be left out."""
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
