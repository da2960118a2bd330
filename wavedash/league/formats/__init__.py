"""Formats of tournaments: who meets whom, as a function of the results so far."""
from __future__ import annotations

from wavedash.errors import UserError
from wavedash.league.formats.bracket import rounds_of
from wavedash.league.formats.double_elimination import DoubleElimination
from wavedash.league.formats.meeting import Format
from wavedash.league.formats.round_robin import RoundRobin
from wavedash.league.formats.single_elimination import SingleElimination


def make_format(name: str, entrants: int, rounds: int | None = None) -> Format:
    """The format of this name. `rounds`: of Swiss; by default as many as single elimination takes."""
    from wavedash.league.formats.swiss import Swiss

    if rounds is not None and name != Swiss.name:
        raise UserError(f"--rounds is for --format swiss: {name} has as many rounds as it takes. Leave it out")
    if name == Swiss.name:
        return Swiss(rounds or rounds_of(entrants))
    return {each.name: each for each in (RoundRobin(), SingleElimination(), DoubleElimination())}[name]
