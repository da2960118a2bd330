"""Whole training iterations of `rocket-1v1` with a share of the arenas against frozen policies, beside the same without them.

    wavedash bench league [--device cpu|cuda] [--arenas N] [--share X] [--slots N] [--rounds N] [OVERRIDE ...]

On a CPU the preset is `rocket-1v1` with 160 arenas, on a GPU `rocket-1v1-gpu` with 16,384 arenas, minibatches of 16,384 and
torch.compile. Overrides are those of `wavedash train`. The opponents have the learner's signature and different weights, and
sample as in training. Both runs are in one process and take turns, iteration by iteration, so that a slow minute of the machine
hits both. Speed is the wall time of a whole iteration with equally many arenas and steps. Rows of opponents are not learned
from, so the ratio of learned steps per second is lower by their share.
"""
from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from time import perf_counter

import torch
from rich.console import Console
from rich.table import Table

from wavedash.assembly import make_policy, prepare_torch
from wavedash.config import RunConfig
from wavedash.config_file import load_config
from wavedash.envs.kinds import kind_of
from wavedash.league.frozen import FrozenPolicies
from wavedash.policy.stacked import StackedActors
from wavedash.ppo.graphs import WARM_UP
from wavedash.ppo.learner import PRECISIONS, Learner
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.line_up import Opponents
from wavedash.rocket.task import Task

SETTINGS = {
    "cpu": ("rocket-1v1", ["env.count=160"]),  # two shards of 80 arenas, of which 16 are a fifth
    "cuda": ("rocket-1v1-gpu", ["env.count=16384", "ppo.minibatch_size=16384", "precision=bf16", "compile=true"]),
}
WITHOUT, WITH = "without opponents", "with opponents"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="wavedash bench league", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=SETTINGS, default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--arenas", type=int)
    parser.add_argument("--share", type=float, default=0.2, help="of the arenas, against opponents")
    parser.add_argument("--slots", type=int, default=8, help="different opponents at the same time")
    parser.add_argument("--rounds", type=int, default=10, help="iterations of each run that are measured")
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE")
    options = parser.parse_args(arguments)
    preset, settings = SETTINGS[options.device]
    arenas = [] if options.arenas is None else [f"env.count={options.arenas}"]
    config = load_config(preset, [f"device={options.device}", *settings, *arenas, "total_steps=1_000_000_000_000",
                                  *options.overrides])
    with ExitStack() as runs:
        learners = {name: runs.enter_context(learner_of(config, share, options.slots))
                    for name, share in ((WITHOUT, None), (WITH, options.share))}
        for learner in learners.values():
            learner.start()
            for _ in range(WARM_UP + 2):  # compilation, capture of graphs
                learner.iterate()
        turns = [{name: measure(learner) for name, learner in learners.items()} for _ in range(options.rounds)]
        played = share_of(learners[WITH])
    show(turns, f"{preset}, {config.env.count:,} arenas x {config.ppo.rollout_steps} steps, {options.slots} opponents in "
                f"{played:.1%} of the arenas, {torch.cuda.get_device_name() if options.device == 'cuda' else 'CPU'}")


@contextmanager
def learner_of(config: RunConfig, share: float | None, slots: int) -> Iterator[Learner]:
    """A learner whose arenas have opponents with random weights; none if `share` is None."""
    device, rocket = prepare_torch(config), config.env.rocket
    assert rocket is not None
    shared: list[StackedActors] = []

    def task() -> Task:
        made = Task.configured(rocket)
        if share is not None:
            if not shared:
                shared.append(random_actors(config, device, slots))
            made.line_up = Opponents(made.action, [FrozenPolicies(shared[0], rocket, "the opponents")], share)
        return made

    env = RocketEnv.configured(config.env, device, task)
    try:
        yield Learner(env, make_policy(env, config), config)
    finally:
        env.close()


def random_actors(config: RunConfig, device: torch.device, slots: int) -> StackedActors:
    """Actors of the learner's signature, each with weights of its own."""
    spaces = kind_of(config.env).spaces(config.env, device)
    policies = [make_policy(spaces, config.model_copy(update={"seed": config.seed + 1 + slot})) for slot in range(slots)]
    for policy in policies:
        policy.precision = PRECISIONS.get(config.precision)  # as the league does
    actors = StackedActors(policies[0], slots)
    for slot, policy in enumerate(policies):
        actors.load(slot, policy)
    return actors


def measure(learner: Learner) -> dict[str, float]:
    """Milliseconds of one iteration, and its learned steps per second."""
    began, before = perf_counter(), learner.steps
    report = learner.iterate()
    seconds = perf_counter() - began
    update = report.seconds["update"]
    collect = sum(report.seconds.values()) - update - report.seconds.get("other", 0.0)
    return {"iteration": 1e3 * seconds, "collection": 1e3 * collect, "update": 1e3 * update,
            "learned steps/s": (learner.steps - before) / seconds}


def share_of(learner: Learner) -> float:
    """The share of its arenas that have opponents."""
    assert isinstance(learner.env, RocketEnv)
    line_ups = [task.line_up for task in learner.env.tasks]
    return sum(len(line_up.games) for line_up in line_ups if line_up) / sum(len(x.seats) for x in line_ups if x)


def show(turns: list[dict[str, dict[str, float]]], title: str) -> None:
    table = Table(title=title, title_justify="left")
    columns = list(turns[0][WITHOUT])
    for column in ("", *(name if "/" in name else f"{name} ms" for name in columns)):
        table.add_column(column, justify="right" if column else "left")
    for name in (WITHOUT, WITH):
        table.add_row(name, *(f"{statistics.median(turn[name][column] for turn in turns):,.{0 if '/' in column else 1}f}"
                              for column in columns))
    ratios = {column: statistics.median(_ratio(turn, column) for turn in turns) for column in columns}
    table.add_row("speed kept", *(f"{100 * ratios[column]:.1f} %" for column in columns))
    Console(width=130, highlight=False).print(table)


def _ratio(turn: dict[str, dict[str, float]], column: str) -> float:
    """Returns the share of the speed that is left with opponents, in one round."""
    ratio = turn[WITH][column] / turn[WITHOUT][column]
    return ratio if "/" in column else 1.0 / ratio
