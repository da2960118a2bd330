"""Whole training iterations of `rocket-1v1` with the two lanes and the ramps of the academy, beside the plain task.

    wavedash bench lanes [--device cpu|cuda] [--rounds N] [--measures] [OVERRIDE ...]

Lanes, measures and ramps are those of the preset `rocket-academy` in its first phase that has two lanes: they are read from it.
Ramps change settings between all iterations. On a CPU the preset of the main task is `rocket-1v1`, on a GPU `rocket-1v1-gpu`.
Overrides are those of `wavedash train`.

Episodes of lanes are short, so more of them begin. That is a cost of the task, whoever plays it: the plain task with its own
`no_touch` shortened until as many episodes end shows how much it is. `--measures` adds a run with all measures of the academy
in all arenas and no lanes.

All runs are in one process and take turns of a few iterations, so that a slow minute of the machine hits all: as many as a GPU
writes the beginnings of episodes for at once, which is part of what lanes cost. Beside other programs the CPU time of the
thread that collects and learns says more than the speed: on a CPU the other threads wait for it.
"""
from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from time import perf_counter, thread_time
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table

from wavedash.assembly import assembled
from wavedash.config import LaneConfig, Named
from wavedash.config_file import load_config
from wavedash.curriculum.curriculum import Curriculum
from wavedash.curriculum.plan import Plan
from wavedash.curriculum.state import PhaseState
from wavedash.errors import UserError
from wavedash.ppo.learner import Learner
from wavedash.rocket.shard import ROLLOUTS
from wavedash.yaml_text import write_yaml

PRESETS = {"cpu": "rocket-1v1", "cuda": "rocket-1v1-gpu"}
ACADEMY = "rocket-academy"
PLAIN, AS_MANY, LANES, RAMPS, MEASURES = "plain", "plain, as many episodes", "two lanes", "two lanes, ramps", "all measures"
SETTLE = 4
"""Turns before the measurement: for compilation, capture of graphs, and until episodes no longer end all at once"""


class Academy(NamedTuple):
    """What the academy has in its first phase with two lanes."""

    phase: str
    lanes: dict[str, LaneConfig]
    measures: list[Named]
    """Those of the main task"""
    ramps: dict[str, Mapping[str, Any]]
    """By keys with dots"""

    @classmethod
    def read(cls) -> Academy:
        plan = Plan(load_config(ACADEMY))
        for number, stage in enumerate(plan.stages()):
            rocket = stage.env.rocket
            assert rocket is not None
            if sum(lane.share > 0.0 for lane in rocket.lanes.values()) == 2:
                ramps = plan.ramps(PhaseState().moved(number, 0))
                return cls(plan.names[number], rocket.lanes, rocket.measures, {_dotted(key): x for key, x in ramps.items()})
        raise UserError(f"the preset {ACADEMY} has no phase with two lanes, which this benchmark is about")

    @property
    def overrides(self) -> list[str]:
        """Overrides that give another preset these lanes and measures."""
        lanes = {name: lane.model_dump() for name, lane in self.lanes.items()}
        return [_override("env.rocket.measures", self.measures), _override("env.rocket.lanes", lanes)]

    @property
    def phases(self) -> list[str]:
        """Overrides that give another preset a phase with these ramps."""
        return [_override("phases", [{"name": self.phase, "set": {name: dict(ramp) for name, ramp in self.ramps.items()}}])]

    @property
    def all_measures(self) -> list[Named]:
        """The measures of the main task and of all lanes."""
        everywhere = [*self.measures, *(measure for lane in self.lanes.values() for measure in lane.measures)]
        return [measure for index, measure in enumerate(everywhere) if measure not in everywhere[:index]]


class Turn(NamedTuple):
    """`ROLLOUTS` iterations."""

    speed: float
    """Agent steps per second"""
    cpu: float
    """Seconds of CPU time of the thread that collects and learns"""
    episodes: int
    """Episodes that ended, counted by cars"""


class Run:
    """A learner with its curriculum."""

    def __init__(self, preset: str, overrides: Sequence[str], runs: ExitStack) -> None:
        config = load_config(preset, overrides)
        self.curriculum = Curriculum(config)
        settings = self.curriculum.settings(0)
        self.learner: Learner = runs.enter_context(assembled(settings))
        decided = self.learner.config  # with the count of arenas that suits the device
        self.title = f"{decided.env.count:,} arenas x {decided.ppo.rollout_steps} steps"
        self.learner.start()
        self.curriculum.on_start(self.learner)
        settled = [self() for _ in range(SETTLE)]
        self.settled = sum(turn.episodes for turn in settled[1:])
        """Episodes that ended before the measurement"""

    def __call__(self) -> Turn:
        """Runs the iterations, and changes the settings that change after each."""
        learner = self.learner
        began, cpu, steps, episodes = perf_counter(), thread_time(), learner.steps, learner.episodes
        for _ in range(ROLLOUTS):
            learner.iterate()
            self.curriculum.between_iterations(learner)
        if learner.stop_reason is not None:
            raise UserError(f"the ramps of this benchmark cannot be changed in place: {learner.stop_reason}")
        return Turn((learner.steps - steps) / (perf_counter() - began), thread_time() - cpu, learner.episodes - episodes)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="wavedash bench lanes", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=PRESETS, default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=10, help=f"of {ROLLOUTS} iterations of each run")
    parser.add_argument("--measures", action="store_true", help="also with all measures in all arenas")
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE")
    options = parser.parse_args(arguments)
    preset, academy = PRESETS[options.device], Academy.read()
    common = [f"device={options.device}", "rating=null", "total_steps=1_000_000_000_000"]
    tasks = {PLAIN: [], LANES: academy.overrides, RAMPS: [*academy.overrides, *academy.phases]}
    tasks |= {MEASURES: [_override("env.rocket.measures", academy.all_measures)]} if options.measures else {}
    with ExitStack() as stack:
        runs = {name: Run(preset, [*common, *task, *options.overrides], stack) for name, task in tasks.items()}
        shorter = _shorter(runs[PLAIN], runs[LANES])
        runs[AS_MANY] = Run(preset, [*common, *options.overrides, *shorter], stack)
        turns = [{name: run() for name, run in runs.items()} for _ in range(options.rounds)]
    where = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    show(turns, f"{preset}, {runs[PLAIN].title}, lanes of {ACADEMY} in {academy.phase}, {where}")


def show(turns: Sequence[Mapping[str, Turn]], title: str) -> None:
    """Prints the median speed of each run, and the median share of the plain task's speed in the same round, with ranges."""
    table = Table(title=title, title_justify="left")
    for column in ("", "steps/s", "range", "of the plain speed", "middle half", "by CPU time", "middle half", "episodes"):
        table.add_column(column, justify="right" if column else "left")
    for name in turns[0]:
        speeds = [turn[name].speed for turn in turns]
        by_speed = [turn[name].speed / turn[PLAIN].speed for turn in turns]
        by_cpu_time = [turn[PLAIN].cpu / turn[name].cpu for turn in turns]
        kept = [cell for each in (by_speed, by_cpu_time) for cell in (f"{statistics.median(each):.1%}", _middle_half(each))]
        table.add_row(name, f"{statistics.median(speeds):,.0f}", f"{min(speeds):,.0f} - {max(speeds):,.0f}",
                      *([""] * len(kept) if name == PLAIN else kept),
                      f"{statistics.mean(turn[name].episodes for turn in turns):,.0f}")
    Console(width=140, highlight=False).print(table)


def _middle_half(shares: Sequence[float]) -> str:
    """The range of the middle half of all rounds: a single round that another program has disturbed says nothing."""
    low, _, high = statistics.quantiles(shares, n=4, method="inclusive") if len(shares) > 1 else [shares[0]] * 3
    return f"{low:.1%} - {high:.1%}"


def _shorter(plain: Run, lanes: Run) -> list[str]:
    """Overrides of the plain task by which about as many episodes end as with lanes."""
    rocket = plain.learner.config.env.rocket
    assert rocket is not None
    limit = (rocket.endings.get("no_touch") or {}).get("seconds", 15.0)
    return [_override("env.rocket.endings.no_touch.seconds", max(0.1, round(limit * plain.settled / max(1, lanes.settled), 2)))]


def _override(key: str, value: Any) -> str:
    return f"{key}={write_yaml(value, inline=True)}"


def _dotted(key: Sequence[int | str]) -> str:
    return ".".join(map(str, key))
