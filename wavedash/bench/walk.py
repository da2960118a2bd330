"""A walking robot: steps per second of physics, of the environment and of whole training, beside plain stepping of MuJoCo.

    wavedash bench walk [--device cpu|cuda] [--preset NAME] [--robots N] [--rounds N] [OVERRIDE ...]

Plain stepping is the simulator's own batch with nothing around it: no state is read, no robot is reset. Physics alone adds the
state that tasks see; the environment adds observations, rewards, commands, randomisation, endings and resets; training adds
the policy and its updates. All step the same robots on the same ground with the same random actions, in turns. The last line
says where the time of an iteration goes. On a GPU every contestant replays a CUDA graph, as training does.
"""
from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from contextlib import closing
from functools import partial
from time import perf_counter

import torch

from wavedash.assembly import assembled
from wavedash.bench.tables import print_rates, take_turns
from wavedash.config_file import load_config
from wavedash.ppo.graphs import WARM_UP, CapturedCall
from wavedash.ppo.learner import Learner
from wavedash.walk.env import WalkEnv

PRESETS = {"cpu": "walk-flat", "cuda": "walk-rough"}
STEPS = 24
"""Steps of all robots in a measurement, as many as a rollout has"""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="wavedash bench walk", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=PRESETS, default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--preset", help="by default walk-flat on a CPU, walk-rough on a GPU")
    parser.add_argument("--robots", type=int)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE")
    options = parser.parse_args(arguments)
    preset = options.preset or PRESETS[options.device]
    robots = [] if options.robots is None else [f"env.count={options.robots}"]
    config = load_config(preset, [f"device={options.device}", "total_steps=1_000_000_000_000", *robots, *options.overrides])
    with assembled(config) as learner, closing(WalkEnv.configured(learner.config.env, learner.env.device)) as env:
        learner.start()
        for _ in range(WARM_UP + 2):  # compilation, capture of graphs
            learner.iterate()
        seconds: dict[str, list[float]] = {}
        random = torch.Generator(env.device).manual_seed(0)
        simulator, parse = env.simulator, env.task.action.parse
        deviation = config.policy.initial_std

        def action() -> torch.Tensor:
            return deviation * torch.randn(env.num_rows, *env.action_space.shape, generator=random, device=env.device)

        steps = {
            "plain MuJoCo": lambda: simulator.plain_step(parse(action(), env.state)),
            "physics and state": lambda: simulator.step(parse(action(), env.state)),
            "environment": lambda: env.step(action()),
        }
        calls = {name: CapturedCall(step, name, [random, *env.generators]) for name, step in steps.items()}
        rates = take_turns({
            **{name: partial(rate, env, call) for name, call in calls.items()},
            "whole training": lambda: train(learner, seconds),
        }, options.rounds)
    where = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    print_rates(f"{preset}, {env.num_rows:,} robots, {where}", rates, beside="plain MuJoCo is")
    for name in ("physics and state", "environment"):
        share = statistics.median(mine / plain for mine, plain in zip(rates[name], rates["plain MuJoCo"], strict=True))
        print(f"{name}: {100 * share:.0f} % of plain stepping")
    total = sum(map(statistics.median, seconds.values()))
    times = {name: statistics.median(x) for name, x in seconds.items()}
    print("an iteration: " + ", ".join(f"{name} {1e3 * x:.0f} ms ({100 * x / total:.0f} %)" for name, x in times.items()))


def rate(env: WalkEnv, step: Callable[[], object]) -> float:
    """Steps of robots per second, after a reset, so that robots are in the same states for all contestants."""
    env.reset(0)
    for _ in range(WARM_UP + 1):
        step()
    synchronize(env)
    began = perf_counter()
    for _ in range(STEPS):
        step()
    synchronize(env)
    return STEPS * env.num_rows / (perf_counter() - began)


def train(learner: Learner, seconds: dict[str, list[float]]) -> float:
    """Steps per second of one iteration, whose times are added to `seconds`."""
    began, before = perf_counter(), learner.steps
    report = learner.iterate()
    for name, x in report.seconds.items():
        seconds.setdefault(name, []).append(x)
    return (learner.steps - before) / (perf_counter() - began)


def synchronize(env: WalkEnv) -> None:
    if env.device.type == "cuda":
        torch.cuda.synchronize()
