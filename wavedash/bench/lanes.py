"""Whole training iterations of `rocket-1v1` with two lanes, measures of skill and a phase with ramps, beside the plain task.

    wavedash bench lanes [--device cpu|cuda] [--rounds N] [--measures] [OVERRIDE ...]

The lanes are a turtle lane and a mechanics lane with its five measures; the main task measures turtle recovery too. The ramps
move a rate, the weight of a reward and the share of a lane between all iterations. On a CPU the preset is `rocket-1v1`, on a
GPU `rocket-1v1-gpu`. Overrides are those of `wavedash train`. All runs are in one process and take turns, iteration by
iteration, so that a slow minute of the machine hits all. `--measures` adds a run with all measures in all arenas and no lanes.
"""
from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from time import perf_counter

import torch

from wavedash.assembly import assembled
from wavedash.bench.tables import print_rates, take_turns
from wavedash.config_file import load_config
from wavedash.curriculum.curriculum import Curriculum
from wavedash.errors import UserError
from wavedash.ppo.graphs import WARM_UP
from wavedash.ppo.learner import Learner

PRESETS = {"cpu": "rocket-1v1", "cuda": "rocket-1v1-gpu"}
TURTLE = ("{share: 0.02, starts: {turtle: 1}, rewards: {recovery: 1}, endings: {recovered: {}, time_out: {seconds: 4}}, "
          "measures: [turtle]}")
MECHANICS = ("{share: 0.1, starts: {wall: 1, air_dribble: 1, flip_reset: 1, jump_challenge: 1, dribble: 1}, "
             "rewards: {goal: 30, concede: 30, velocity_ball_to_goal: 0.1, strong_hit: 3, flip_reset: 5}, "
             "endings: {goal: {}, time_out: {seconds: 6}}, "
             "measures: [wall, {air_dribble: {least: 1}}, flip_reset, jump_challenge, {dribble: {least: 0}}]}")
LANES = ["env.rocket.measures=[turtle]", f"env.rocket.lanes={{turtle: {TURTLE}, mechanics: {MECHANICS}}}"]
RAMPS = ["phases=[{name: Ramps, set: {ppo.learning_rate: {from: 3e-4, to: 1e-4, over: 1_000_000_000_000}, "
         "env.rocket.rewards.face_ball: {from: 0.005, to: 0.001, over: 1_000_000_000_000}, "
         "env.rocket.lanes.mechanics.share: {from: 0.05, to: 0.1, over: 1_000_000_000_000}}}]"]
ALL = ["env.rocket.measures=[turtle, wall, air_dribble, flip_reset, jump_challenge, dribble]"]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="wavedash bench lanes", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=PRESETS, default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=10, help="iterations of each run that are measured")
    parser.add_argument("--measures", action="store_true", help="also with all measures in all arenas")
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE")
    options = parser.parse_args(arguments)
    tasks = {"plain": [], "two lanes": LANES, "two lanes, ramps": LANES + RAMPS}
    tasks |= {"all measures": ALL} if options.measures else {}
    preset = PRESETS[options.device]
    with ExitStack() as runs:
        contestants: dict[str, Callable[[], float]] = {}
        for name, task in tasks.items():
            config = load_config(preset, [f"device={options.device}", "rating=null", "total_steps=1_000_000_000_000", *task,
                                          *options.overrides])
            curriculum = Curriculum(config)
            learner = runs.enter_context(assembled(curriculum.settings(0)))
            learner.start()
            curriculum.on_start(learner)
            for _ in range(WARM_UP + 2):  # compilation, capture of graphs
                measure(learner, curriculum)
            contestants[name] = partial(measure, learner, curriculum)
        rates = take_turns(contestants, options.rounds)
    where = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    print_rates(f"{preset}, {config.env.count:,} arenas x {config.ppo.rollout_steps} steps, {where}", rates,
                beside="the plain task is")


def measure(learner: Learner, curriculum: Curriculum) -> float:
    """Agent steps per second of one iteration, and of the settings that change after it."""
    began, before = perf_counter(), learner.steps
    learner.iterate()
    curriculum.between_iterations(learner)
    if learner.stop_reason is not None:
        raise UserError(f"the ramps of this benchmark cannot be changed in place: {learner.stop_reason}")
    return (learner.steps - before) / (perf_counter() - began)
