"""The batched simulator against RocketSim: the same starts, the same keys, how far apart after 1, 8 and 120 ticks?

    wavedash bench parity [--scene NAME]... [--count 128] [--seed 0] [--run RUN] [--markdown FILE]
    wavedash bench parity --trace SCENE [--tolerance 0.01] [--around 4] [--arena N]

One row for each mechanic. Errors are distances between the two simulators: median, and what 99 of 100 starts stay below. A
scene is judged where it is not yet chaotic, after 8 ticks:

- flying and driving: median errors of velocity under 0.5 uu/s and of position under 0.05 uu;
- bounces of the ball: median error of its velocity under 1 % of the change of velocity; hits and bumps: under 3 %;
- events, flags and contacts of the wheels: the same for over 99 % of the cars, each kind by itself;
- a car that tumbles or rocks on its roof: a tiny difference grows a thousand times for some starts. There, rest pose, energy
  and time to settle must be distributed alike: a two-sample test may not tell them apart (at 1 %). Beside it stands how far
  RocketSim is from itself when its starts are nudged by 0.01 uu.

`random play`, `scripted play` and `trained play` (of --run) put both simulators into moments of games on RocketSim.
"""
from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.table import Table

from wavedash.bench.parity_compare import (
    CHANGE_LIMITS,
    EVENT_LIMIT,
    HORIZONS,
    JUDGED,
    POSITION_LIMIT,
    QUANTITIES,
    VELOCITY_LIMIT,
    Figure,
    Film,
    Row,
    compare,
    film,
    joined,
)
from wavedash.bench.parity_play import play_scene, random_play, scripted_play, trained_play, trained_task
from wavedash.bench.parity_scenes import SCENES
from wavedash.bench.parity_spread import FACES, SpreadRow, compare_spread, nudged
from wavedash.bench.parity_stage import Scene, Script, Target, script
from wavedash.bench.parity_trace import print_trace
from wavedash.errors import UserError
from wavedash.rocket.constants import HITBOXES
from wavedash.rocket.simulator import Simulator

MakeSimulator = Callable[[int, int, int], Simulator]
"""For so many arenas, blue and orange seats"""
PLAYS: dict[str, tuple[int, int, Callable[[Simulator, int], list[Script]]]] = {
    "random play": (1, 1, random_play), "scripted play": (1, 1, scripted_play), "scripted play, 3v3": (3, 3, scripted_play),
}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="wavedash bench parity", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scene", action="append", metavar="NAME", help=f"only this one: {', '.join([*SCENES, *PLAYS])}")
    parser.add_argument("--count", type=int, default=128, help="starts of each scene")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", metavar="RUN", help="a run of a Rocket League task: its policy plays as well")
    parser.add_argument("--hitbox", default="octane", choices=[hitbox.name for hitbox in HITBOXES])
    parser.add_argument("--device", default="cpu", help="of the batched simulator")
    parser.add_argument("--candidate", default="warp", choices=["warp", "rocketsim"],
                        help="rocketsim: against itself, where every error must be 0")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there as well")
    parser.add_argument("--trace", metavar="SCENE", help="show where and how the simulators part, instead of tables")
    parser.add_argument("--tolerance", type=float, default=0.01, help="of --trace, in uu and uu/s")
    parser.add_argument("--around", type=int, default=4, help="of --trace: ticks to show from the first difference on")
    parser.add_argument("--arena", type=int, help="of --trace: show this one; by default the worst and the median")
    options = parser.parse_args(arguments)
    stage = Both(options.count, _rocketsim(options.hitbox), _candidate(options.candidate, options.hitbox, options.device),
                 options.seed, options.run)
    try:
        if options.trace:
            taken = stage.take(options.trace)
            print_trace(taken.scene, taken.script, taken.theirs, taken.ours, options.tolerance, options.around, options.arena)
        else:
            _print_tables(stage, options.scene or stage.names, options.markdown)
    finally:
        stage.close()


def _rocketsim(hitbox: str) -> MakeSimulator:
    def make(arenas: int, blue: int, orange: int) -> Simulator:
        from wavedash.rocket.rocketsim.simulator import RocketSimSimulator

        return RocketSimSimulator(arenas, blue, orange, hitboxes=hitbox)
    return make


def _candidate(name: str, hitbox: str, device: str) -> MakeSimulator | None:
    def make(arenas: int, blue: int, orange: int) -> Simulator:
        from wavedash.rocket.sim.simulator import WarpSimulator

        return WarpSimulator(arenas, blue, orange, hitboxes=hitbox, device=device)
    return make if name == "warp" else None


@dataclass
class Taken:
    """A scene that both have played."""

    scene: Scene
    script: Script
    theirs: Film
    ours: Film


class Both:
    """Two simulators of each size that is needed. Without `candidate`, RocketSim plays twice."""

    def __init__(self, count: int, reference: MakeSimulator, candidate: MakeSimulator | None = None, seed: int = 0,
                 run: str | None = None) -> None:
        self.count, self.seed, self.run = count, seed, run
        self._make = reference, candidate
        self._made: dict[tuple[int, int], tuple[Simulator, Simulator]] = {}

    @cached_property
    def names(self) -> list[str]:
        return [*SCENES, *PLAYS, *(["trained play"] if self.run else [])]

    def simulators(self, blue: int = 1, orange: int = 1) -> tuple[Simulator, Simulator]:
        if (blue, orange) not in self._made:
            reference, candidate = self._make
            theirs = reference(self.count, blue, orange)
            self._made[blue, orange] = theirs, candidate(self.count, blue, orange) if candidate else theirs
        return self._made[blue, orange]

    def take(self, name: str) -> Taken:
        """Both play a scene, or moments of play."""
        if name not in self.names:
            near = difflib.get_close_matches(name, self.names, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"they are: {', '.join(self.names)}"
            raise UserError(f"no scene is named '{name}'; {hint}")
        if name in SCENES:
            return self.play(SCENES[name])
        theirs, ours, scripts = self._recorded(name)
        return _filmed(play_scene(name, theirs.state.seats), theirs, ours, scripts)

    def play(self, scene: Scene) -> Taken:
        """A scene of any kind, or a shorter one than in the table."""
        theirs, ours = self.simulators()
        return _filmed(scene, theirs, ours, [script(scene, theirs, self.seed)])

    def _recorded(self, name: str) -> tuple[Simulator, Simulator, list[Script]]:
        if name in PLAYS:
            blue, orange, record = PLAYS[name]
            theirs, ours = self.simulators(blue, orange)
            return theirs, ours, record(theirs, self.seed)
        assert self.run is not None
        task = trained_task(self.run)
        theirs, ours = self.simulators(task.blue, task.orange)
        return theirs, ours, trained_play(theirs, self.run, self.seed)

    def measure(self, name: str) -> tuple[Row, SpreadRow | None]:
        """The row of a scene; of tumbling cars their distributions as well."""
        taken = self.take(name)
        row = compare(taken.scene, taken.theirs, taken.ours)
        if taken.scene.target is not Target.SPREAD:
            return row, None
        natural = film(self.simulators()[0], nudged(taken.script))
        return row, compare_spread(taken.scene, taken.theirs, taken.ours, natural)

    def close(self) -> None:
        for simulators in self._made.values():
            for simulator in simulators:
                simulator.close()


def _filmed(scene: Scene, theirs: Simulator, ours: Simulator, scripts: list[Script]) -> Taken:
    films = [joined([film(simulator, one) for one in scripts]) for simulator in (theirs, ours)]
    return Taken(scene, _one(scripts), *films)


def _one(scripts: list[Script]) -> Script:
    """Of all arenas, one after the other."""
    import torch

    (start,) = joined([[one.start] for one in scripts])
    return Script(start, torch.cat([one.controls for one in scripts], 1))


# --- tables ----------------------------------------------------------------------------------------------------------


@dataclass
class Sheet:
    """A table, for the console and for a page."""

    title: str
    columns: list[tuple[str, Literal["left", "right"]]]
    rows: list[list[str]]

    def print(self) -> None:
        table = Table(title=self.title, title_justify="left", padding=(0, 0, 0, 1))
        for name, justify in self.columns:
            table.add_column(name, justify=justify, no_wrap=True)
        for row in self.rows:
            table.add_row(*row)
        Console(width=180, highlight=False).print(table)

    def markdown(self) -> str:
        rules = ["---:" if justify == "right" else "---" for _, justify in self.columns]
        lines = [[name.replace("\n", " ") for name, _ in self.columns], rules, *self.rows]
        return f"## {self.title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _print_tables(stage: Both, names: list[str], markdown: Path | None) -> None:
    measured = []
    for name in names:
        measured.append(stage.measure(name))
        print(f"{name}: {_verdict(*measured[-1])}", flush=True)
    rows, spreads = [row for row, _ in measured], [spread for _, spread in measured if spread]
    sheets = [_verdicts(rows, {spread.scene.name: spread for spread in spreads}), _errors(rows)]
    if spreads:
        sheets.append(_spreads(spreads))
    for sheet in sheets:
        sheet.print()
    if markdown:
        markdown.write_text("\n".join(sheet.markdown() for sheet in sheets), encoding="utf-8")


def _verdict(row: Row, spread: SpreadRow | None) -> str:
    misses = [*row.misses, *(spread.misses if spread else [])]
    return "MISSED: " + ", ".join(misses) if misses else "met"


def _verdicts(rows: list[Row], spreads: dict[str, SpreadRow]) -> Sheet:
    lines = []
    for row in rows:
        spread = spreads.get(row.scene.name)
        what, target = _judged(row, spread)
        at = row.scene.events_at
        kind, share = row.worst_event(at)
        events = "-" if spread else "100 %" if share == 1 else f"{100 * share:.2f} % ({kind})"
        lines.append([row.scene.name, str(row.starts), what, target, events, "-" if spread else str(at), _verdict(row, spread)])
    return Sheet("Verdicts", [
        ("scene", "left"), ("starts", "right"), ("measured", "left"), ("target", "left"),
        (f"agreement on events\n(target: over {100 * EVENT_LIMIT:.0f} %)", "left"), ("after ticks", "right"), ("", "left"),
    ], lines)


def _judged(row: Row, spread: SpreadRow | None) -> tuple[str, str]:
    """What was measured, and what it should be."""
    if spread:
        name, (worst, natural) = max(spread.distances.items(), key=lambda item: item[1][0])
        return f"{name}: {worst:.2f} (nudged {natural:.2f})", f"< {spread.limit:.2f}"
    if row.change:
        limit = CHANGE_LIMITS[row.scene.target]
        return f"{_number(100 * row.change.median)} % of the change (of {row.changed})", f"< {100 * limit:.0f} %"
    if row.scene.target is Target.MOTION:
        position, velocity = (max(row.errors[body, JUDGED][name].median for body in row.scene.of)
                              for name in ("position", "velocity"))
        return f"{_number(position)} uu, {_number(velocity)} uu/s", f"< {POSITION_LIMIT} uu, < {VELOCITY_LIMIT} uu/s"
    return "-", "-"


def _errors(rows: list[Row]) -> Sheet:
    units = {"position": "uu", "velocity": "uu/s", "angular_velocity": "rad/s"}
    names = {"angular_velocity": "spin"}
    columns: list[tuple[str, Literal["left", "right"]]] = [("scene", "left"), ("of", "left")]
    columns += [(f"tick {tick}\n{names.get(name, name)}, {units[name]}", "right") for tick in HORIZONS for name in QUANTITIES]
    lines = []
    for row in rows:
        for body in row.scene.of:
            cells = [row.errors.get((body, tick), {}).get(name) for tick in HORIZONS for name in QUANTITIES]
            lines.append([row.scene.name, body, *(_figure(cell) for cell in cells)])
    return Sheet("Errors: median / 99 of 100 are below", columns, lines)


def _spreads(rows: list[SpreadRow]) -> Sheet:
    lines = []
    for row in rows:
        poses = ", ".join(f"{name} {100 * a:.0f}/{100 * b:.0f} %" for name, a, b in zip(
            FACES, row.theirs.faces.tolist(), row.ours.faces.tolist(), strict=True) if a or b)
        medians = [f"{float(a.median()):.2g}/{float(b.median()):.2g}" for a, b in (
            (row.theirs.settled, row.ours.settled), *((row.theirs.energy[s], row.ours.energy[s]) for s in row.theirs.energy))]
        for (name, (ours, natural)), shown in zip(row.distances.items(), [poses, *medians], strict=True):
            lines.append([row.scene.name, name, shown, f"{ours:.3f}", f"{natural:.3f}", f"{row.limit:.3f}",
                          "MISSED" if name in row.misses else "met"])
    return Sheet("Tumbling cars: distances between distributions", [
        ("scene", "left"), ("of", "left"), ("RocketSim / ours (shares, medians)", "left"), ("ours", "right"),
        ("RocketSim, nudged", "right"), ("limit", "right"), ("", "left"),
    ], lines)


def _figure(figure: Figure | None) -> str:
    return "-" if figure is None else f"{_number(figure.median)} / {_number(figure.most)}"


def _number(x: float) -> str:
    if x == 0:
        return "0"
    return "<.001" if x < 1e-3 else f"{x:.2g}" if x < 100 else f"{x:.0f}"
