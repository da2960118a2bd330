"""Rocket League, 1v1: the environment against bare RocketSim and RLGym, training against rlgym-learn and rlgym-ppo.

    wavedash bench rocket [--rounds 3] [--marks 6] [--rlgym-ppo FOLDER] [--rlgym-ppo-python PYTHON]

All have the same task (kick-offs, RLGym's DefaultObs and lookup table, goals and touches, RLGym's endings), two networks of the
same size, and equal iterations, epochs and minibatches. Every contestant runs in processes of its own; they take turns. A
trainer gets as many arenas as suit it: ours steps many in each process, the peers start a process for each and are measured
with several numbers of processes. `wavedash[rocket]` brings RLGym. The peers come with `pip install rlgym-learn
rlgym-learn-algos` and a checkout of rlgym-ppo, with the Python of an environment that has what it needs (wandb, gym; by default
this one).
"""
from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

from wavedash.bench import rocket_peers
from wavedash.bench.rocket_peers import MARK, Sizes, step_on
from wavedash.bench.tables import print_rates, take_turns
from wavedash.errors import UserError

WARM_UP = 2
"""Marks that are not counted: imports, caches, CPU clocks."""
SIZES = Sizes(arenas=128, processes=2, steps=16_384, epochs=2, minibatch=4_096, hidden=[256, 256, 256], threads=1, marks=0)
PEER_PROCESSES = (4, 8)
"""Numbers of processes that the peers are measured with."""
EPISODE = 450
"""Steps between two kick-offs of bare RocketSim: 30 seconds."""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="wavedash bench rocket", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--marks", type=int, default=6, help="seconds (environments) or iterations (trainers) of a measurement")
    parser.add_argument("--rlgym-ppo", type=Path, help="folder of an rlgym-ppo checkout")
    parser.add_argument("--rlgym-ppo-python", type=Path, default=Path(sys.executable))
    options = parser.parse_args(arguments)
    sizes = replace(SIZES, marks=options.marks + WARM_UP)
    print_rates("1v1, 8 ticks a step, random actions, one process: agent steps per second",
                take_turns(_environments(sizes), options.rounds))
    trainers = _trainers(sizes, options.rlgym_ppo, options.rlgym_ppo_python)
    print_rates(f"1v1, 8 ticks a step, {sizes.steps:,} agent steps an iteration, {sizes.epochs} epochs, minibatches of "
                f"{sizes.minibatch:,}, networks of {sizes.hidden}: agent steps per second of whole training",
                take_turns(trainers, options.rounds))


def _environments(sizes: Sizes) -> dict[str, Callable[[], float]]:
    return {
        "RocketEnv": partial(_rate, _ours(step_rocket_env), sizes),
        "RocketEnv on RocketSim": partial(_rate, _ours(step_rocket_env), replace(sizes, simulator="rocketsim")),
        "bare RocketSim": partial(_rate, _ours(step_rocketsim), sizes),
        "RLGym v2": partial(_rate, _peer(rocket_peers.step_rlgym), sizes),
    }


def _trainers(sizes: Sizes, rlgym_ppo: Path | None, python: Path) -> dict[str, Callable[[], float]]:
    trainers: dict[str, Callable[[], float]] = {
        "wavedash": partial(_rate, _ours(train_wavedash), replace(sizes, processes=0)),
        "wavedash on RocketSim, 2 workers": partial(_rate, _ours(train_wavedash), replace(sizes, simulator="rocketsim")),
    }
    for processes in PEER_PROCESSES:
        theirs = replace(sizes, processes=processes)
        trainers[f"rlgym-learn, {processes} processes"] = partial(
            _rate, _peer(rocket_peers.train_rlgym_learn), theirs, needs="pip install rlgym-learn rlgym-learn-algos")
        if rlgym_ppo:
            trainers[f"rlgym-ppo, {processes} processes"] = partial(
                _rate, _peer(rocket_peers.train_rlgym_ppo, python.absolute()), theirs, PYTHONPATH=str(rlgym_ppo.absolute()))
    return trainers


def _ours(contestant: Callable[[Sizes], None]) -> list[str]:
    return [sys.executable, "-m", __spec__.name if __spec__ else __name__, contestant.__name__]


def _peer(contestant: Callable[[Sizes], None], python: Path | str = sys.executable) -> list[str]:
    return [str(python), str(Path(rocket_peers.__file__)), contestant.__name__]


def _rate(command: list[str], sizes: Sizes, needs: str = "", **environ: str) -> float:
    """Steps per second of a process, from the times at which it prints how many it has done."""
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
        [*command, json.dumps(asdict(sizes))], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONSAFEPATH": "1", **environ},
    ) as process:
        assert process.stdout is not None
        marks = [(perf_counter(), int(line.removeprefix(MARK))) for line in process.stdout if line.startswith(MARK)]
        _, errors = process.communicate()
    if len(marks) <= WARM_UP + 1:
        raise UserError(f"it did not run{f' ({needs})' if needs else ''}:\n{errors[-1000:]}")
    counted = marks[WARM_UP:]
    return statistics.median((b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(counted))


# --- our contestants -------------------------------------------------------------------------------------------------


def config_of(sizes: Sizes) -> Any:
    from wavedash.config import EnvConfig, PolicyConfig, PPOConfig, RocketConfig, RunConfig

    return RunConfig(
        env=EnvConfig(
            count=sizes.arenas, workers=sizes.processes,
            rocket=RocketConfig(
                simulator=sizes.simulator,
                observation={"default_obs": {"zero_padding": None}},
                action={"lookup_table": {"ticks": sizes.tick_skip, "masked": False}},
                rewards={"goal": sizes.goal, "concede": sizes.goal, "touch": sizes.touch},
                endings={"goal": {}, "no_touch": {"seconds": sizes.no_touch}, "time_out": {"seconds": sizes.time_out}},
            ),
        ),
        policy=PolicyConfig(hidden=sizes.hidden, activation="relu"),
        ppo=PPOConfig(rollout_steps=sizes.steps // (2 * sizes.arenas), epochs=sizes.epochs, minibatch_size=sizes.minibatch),
        total_steps=10**12,
    )


def train_wavedash(sizes: Sizes) -> None:
    from wavedash.assembly import assembled

    with assembled(config_of(sizes)) as learner:
        learner.start()
        for _ in range(sizes.marks):
            learner.iterate()
            rocket_peers.say(learner.steps)


def step_rocket_env(sizes: Sizes) -> None:
    """Step our environment; our own simulator uses all cores."""
    import torch

    from wavedash.envs.make import make_env

    torch.set_num_threads(1)
    env = make_env(config_of(replace(sizes, processes=0)).env)
    env.reset(0)

    def step() -> int:
        env.step(torch.randint(90, (env.num_rows,)))
        return env.num_rows

    step_on(step, sizes.marks)


def step_rocketsim(sizes: Sizes) -> None:
    """Step RocketSim alone: controls go in, nothing is read."""
    from wavedash.rocket.actions.lookup_table import LookupTable
    from wavedash.rocket.rocketsim.package import rocketsim
    from wavedash.rocket.state import CONTROLS

    rs = rocketsim()
    arenas = [rs.Arena(rs.GameMode.SOCCAR) for _ in range(sizes.arenas)]
    cars = [[arena.add_car(team) for team in (0, 1)] for arena in arenas]
    rows = [rs.CarControls(**{name: type(getattr(rs.CarControls(), name))(x) for name, x in zip(CONTROLS, row, strict=True)})
            for row in LookupTable().rows()]
    for arena in arenas:
        arena.reset_kickoff()
    clock = count()

    def step() -> int:
        now = next(clock)
        for number, (arena, (blue, orange)) in enumerate(zip(arenas, cars, strict=True)):
            blue.set_controls(random.choice(rows))
            orange.set_controls(random.choice(rows))
            arena.step(sizes.tick_skip)
            if (now + number) % EPISODE == 0:
                arena.reset_kickoff()
        return 2 * len(arenas)

    step_on(step, sizes.marks)


CONTESTANTS = {contestant.__name__: contestant for contestant in (train_wavedash, step_rocket_env, step_rocketsim)}

if __name__ == "__main__":
    CONTESTANTS[sys.argv[1]](Sizes(**json.loads(sys.argv[2])))
