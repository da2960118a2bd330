"""The batched simulator against RocketSim: the same starts, the same controls, how far apart after 1, 8, 120 ticks?

    wavedash bench parity [--scene NAME]... [--count 128] [--seed 0] [--run RUN] [--markdown FILE]
    wavedash bench parity --trace SCENE [--tolerance 0.01] [--around 4] [--arena N]

The tables have one row for each mechanic. Errors are distances between the two simulators: the median, and what 99 of 100
starts stay below. A scene is judged after 8 ticks, where it is not yet chaotic:

- flying and driving: median errors of velocity under 0.5 uu/s and of position under 0.05 uu;
- bounces of the ball: median error of its velocity under 1 % of the change of velocity; hits and bumps: under 3 %;
- events, flags and contacts of the wheels: the same for over 99 % of the cars, each kind by itself;
- a car that tumbles or rocks on its roof: for some starts a tiny difference grows a thousand times. So rest pose, energy and
  time to settle must be distributed alike: a two-sample test at 1 % may not tell them apart. Beside it the table says how far
  RocketSim is from itself when its starts are nudged by 0.01 uu.

`random play`, `scripted play` and `trained play` (with --run) put both simulators into moments of games on RocketSim.

Top-down: `pair.py` plays the `scenes` (`scene.py` says what one is) and the `moments` of games in both simulators, `compare.py`
and `spread.py` measure the differences, `tables.py` prints them; `trace.py` shows where a scene begins to differ.
"""
from __future__ import annotations

import argparse
from pathlib import Path

from wavedash.bench.parity.pair import PLAYS, MakeSimulator, SimulatorPair
from wavedash.bench.parity.scenes import SCENES
from wavedash.bench.parity.tables import print_tables
from wavedash.bench.parity.trace import print_trace
from wavedash.rocket.constants import HITBOXES
from wavedash.rocket.simulator import Simulator


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
    parser.add_argument("--trace", metavar="SCENE", help="show where and how the simulators begin to differ, instead of tables")
    parser.add_argument("--tolerance", type=float, default=0.01, help="of --trace, in uu and uu/s")
    parser.add_argument("--around", type=int, default=4, help="of --trace: ticks to show from the first difference on")
    parser.add_argument("--arena", type=int, help="of --trace: show this one; by default the worst and the median")
    options = parser.parse_args(arguments)
    candidate = _warp(options.hitbox, options.device) if options.candidate == "warp" else None
    pair = SimulatorPair(options.count, _rocketsim(options.hitbox), candidate, options.seed, options.run)
    try:
        if options.trace:
            played = pair.play_named(options.trace)
            print_trace(played.scene, played.script, played.theirs, played.ours, options.tolerance, options.around,
                        options.arena)
        else:
            print_tables(pair, options.scene or pair.names, options.markdown)
    finally:
        pair.close()


def _rocketsim(hitbox: str) -> MakeSimulator:
    def make(arenas: int, blue: int, orange: int) -> Simulator:
        from wavedash.rocket.rocketsim.simulator import RocketSimSimulator

        return RocketSimSimulator(arenas, blue, orange, hitboxes=hitbox)
    return make


def _warp(hitbox: str, device: str) -> MakeSimulator:
    def make(arenas: int, blue: int, orange: int) -> Simulator:
        from wavedash.rocket.sim.simulator import WarpSimulator

        return WarpSimulator(arenas, blue, orange, hitboxes=hitbox, device=device)
    return make
