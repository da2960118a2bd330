"""RocketSim and a candidate play the same scenes."""
from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch

from wavedash.bench.parity.compare import Row, Trajectory, compare, joined, play_script
from wavedash.bench.parity.moments import moments_scene, random_play, scripted_play, trained_play, trained_task
from wavedash.bench.parity.scene import Scene, Script, Target, write_script
from wavedash.bench.parity.scenes import SCENES
from wavedash.bench.parity.spread import SpreadRow, compare_spread, nudged
from wavedash.errors import UserError
from wavedash.rocket.simulator import Simulator

MakeSimulator = Callable[[int, int, int], Simulator]
"""Makes a simulator for so many arenas, blue and orange seats."""
PLAYS: dict[str, tuple[int, int, Callable[[Simulator, int], list[Script]]]] = {
    "random play": (1, 1, random_play), "scripted play": (1, 1, scripted_play), "scripted play, 3v3": (3, 3, scripted_play),
}
"""Moments of games, by name: blue seats, orange seats, and what records them."""


@dataclass
class Played:
    """A scene that both simulators have played."""

    scene: Scene
    script: Script
    theirs: Trajectory
    """RocketSim's."""
    ours: Trajectory


class SimulatorPair:
    """Plays scenes in RocketSim (`reference`) and in a candidate; without `candidate`, RocketSim plays twice.

    Simulators are made when a scene first needs one of their size.
    """

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

    def play_named(self, name: str) -> Played:
        """Play a scene of the table, or moments of games."""
        if name not in self.names:
            near = difflib.get_close_matches(name, self.names, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"they are: {', '.join(self.names)}"
            raise UserError(f"no scene is named '{name}'; {hint}")
        if name in SCENES:
            return self.play(SCENES[name])
        theirs, ours, scripts = self._record(name)
        return _play_both(moments_scene(name, theirs.state.seats), theirs, ours, scripts)

    def play(self, scene: Scene) -> Played:
        """Play any scene, which need not be in the table."""
        theirs, ours = self.simulators()
        return _play_both(scene, theirs, ours, [write_script(scene, theirs, self.seed)])

    def measure(self, name: str) -> tuple[Row, SpreadRow | None]:
        """The row of a scene; for tumbling cars their distributions as well."""
        played = self.play_named(name)
        row = compare(played.scene, played.theirs, played.ours)
        if played.scene.target is not Target.SPREAD:
            return row, None
        natural = play_script(self.simulators()[0], nudged(played.script))
        return row, compare_spread(played.scene, played.theirs, played.ours, natural)

    def close(self) -> None:
        for simulators in self._made.values():
            for simulator in simulators:
                simulator.close()

    def _record(self, name: str) -> tuple[Simulator, Simulator, list[Script]]:
        """Both simulators, and moments of games in the first."""
        if name in PLAYS:
            blue, orange, record = PLAYS[name]
            theirs, ours = self.simulators(blue, orange)
            return theirs, ours, record(theirs, self.seed)
        assert self.run is not None
        size = trained_task(self.run).largest
        theirs, ours = self.simulators(size.blue, size.orange)
        return theirs, ours, trained_play(theirs, self.run, self.seed)


def _play_both(scene: Scene, theirs: Simulator, ours: Simulator, scripts: list[Script]) -> Played:
    played = [joined([play_script(simulator, script) for script in scripts]) for simulator in (theirs, ours)]
    return Played(scene, _one_script(scripts), *played)


def _one_script(scripts: list[Script]) -> Script:
    """All scripts side by side, as if their arenas were those of one simulator."""
    (start,) = joined([[one.start] for one in scripts])
    return Script(start, torch.cat([one.controls for one in scripts], 1))
