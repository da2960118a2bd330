"""Whole training iterations of `rocket-1v1` in our simulator: agent steps per second, and whether they still learn.

    wavedash bench iteration [--device cpu|cuda] [--arenas N ...] [--steps N] [--minibatch N] [--iterations N] [--profile]

The task is the preset's, with its observation, masks, rewards, starts and endings; an update has 2 epochs. On a GPU two
networks of 512x3 train in bf16 with CUDA graphs, each number of arenas with and without torch.compile. The table has entropy,
KL, clip fraction and the size of the update beside every speed, because an update that does nothing is fast. `--profile` shows
what takes the time of a step and of a minibatch, kernel by kernel.
"""
from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.profiler import ProfilerActivity, profile

from wavedash.assembly import assembled
from wavedash.config import RunConfig
from wavedash.config_file import load_config
from wavedash.ppo.graphs import WARM_UP
from wavedash.ppo.learner import Learner

SIZES: dict[str, dict[str, Any]] = {
    "cuda": {"arenas": [4096, 16_384, 65_536], "steps": 32, "minibatch": 65_536, "hidden": 512, "precision": "bf16"},
    "cpu": {"arenas": [32, 128], "steps": 32, "minibatch": 1024, "hidden": 64, "precision": "fp32"},
}
METRICS = {"entropy": "policy/entropy", "KL": "policy/kl", "clip": "policy/clip_fraction", "update size": "optim/update_size",
           "explained": "loss/explained_variance"}
PROFILED_STEPS = 4
"""Steps of the rollout that `--profile` looks at."""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="wavedash bench iteration", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=SIZES, default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--arenas", type=int, nargs="+")
    parser.add_argument("--steps", type=int, help="of every arena in one iteration")
    parser.add_argument("--minibatch", type=int)
    parser.add_argument("--hidden", type=int, help="width of the three layers")
    parser.add_argument("--precision", choices=["fp32", "bf16", "fp16"])
    parser.add_argument("--compile", choices=["off", "on", "both"])
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args(arguments)
    for name, value in SIZES[options.device].items():
        setattr(options, name, getattr(options, name) or value)
    compiled = options.compile or ("both" if options.device == "cuda" else "off")
    if options.profile:
        profile_eager(options, compiled == "on")
        return
    where = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    table = Table(title=f"1v1: agent steps per second of whole iterations; {options.steps} steps, minibatches of "
                        f"{options.minibatch:,}, 2 epochs, {options.hidden}x3, {options.precision}, {where}",
                  title_justify="left")
    for column in ("arenas", "compile", "steps/s", "collect ms", "update ms", *METRICS, "episodes", "peak GB"):
        table.add_column(column, justify="right")
    for arenas in options.arenas:
        for compile in {"off": [False], "on": [True], "both": [False, True]}[compiled]:
            row = [f"{arenas:,}", "on" if compile else "off", *measure(config_of(options, arenas, compile), options.iterations)]
            print(*row, flush=True)
            table.add_row(*row)
    Console(width=150, highlight=False).print(table)


def config_of(options: argparse.Namespace, arenas: int, compile: bool, *more: str) -> RunConfig:
    return load_config("rocket-1v1", [
        f"device={options.device}", f"env.count={arenas}", f"precision={options.precision}", f"compile={str(compile).lower()}",
        f"policy.hidden={[options.hidden] * 3}", "ppo.epochs=2", f"ppo.rollout_steps={options.steps}",
        f"ppo.minibatch_size={options.minibatch}", "total_steps=1_000_000_000_000", *more,
    ])


def measure(config: RunConfig, iterations: int) -> list[str]:
    cuda = config.device == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    with assembled(config) as learner:
        learner.start()
        for _ in range(WARM_UP + 2):  # compilation, capture of graphs
            learner.iterate()
        rates, collect, update = [], [], []
        for _ in range(iterations):
            began, before = perf_counter(), learner.steps
            report = learner.iterate()
            rates.append((learner.steps - before) / (perf_counter() - began))
            collect.append(sum(x for name, x in report.seconds.items() if name not in ("update", "other")))
            update.append(report.seconds["update"])
        metrics = report.metrics
    return [
        f"{statistics.median(rates):,.0f}", f"{1e3 * statistics.median(collect):.1f}", f"{1e3 * statistics.median(update):.1f}",
        *(f"{metrics[name]:.4f}" for name in METRICS.values()), f"{metrics['rollout/episodes']:,.0f}",
        f"{torch.cuda.max_memory_allocated() / 2**30:.1f}" if cuda else "",
    ]


# --- what takes the time ---------------------------------------------------------------------------------------------


def profile_eager(options: argparse.Namespace, compile: bool) -> None:
    """Profile a step and an update without CUDA graphs, in which operations have no names."""
    arenas = options.arenas[-1]
    samples = 2 * arenas * PROFILED_STEPS
    options.steps, options.minibatch = PROFILED_STEPS, min(options.minibatch, samples)
    with assembled(config_of(options, arenas, compile, "graphs=false", "ppo.epochs=1")) as learner:
        learner.start()
        for _ in range(2):
            learner.iterate()
        print(f"\n{PROFILED_STEPS} steps of {arenas:,} arenas, one after the other:")
        _show(options, lambda: _collect(learner))
        print(f"\n{-(-samples // options.minibatch)} minibatch(es) of {options.minibatch:,}:")
        _show(options, lambda: learner.updater.update(learner.buffer))


def _collect(learner: Learner) -> None:
    rollout = learner.buffer.next_slot()
    learner.env.prepare()
    learner.complete(rollout, learner.collector.collect(rollout))


def _show(options: argparse.Namespace, work: Callable[[], object]) -> None:
    cuda = options.device == "cuda"
    with profile(activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]) as found, _finished(cuda):
        work()
    order = "self_device_time_total" if cuda else "self_cpu_time_total"
    print(found.key_averages().table(sort_by=order, row_limit=30, max_name_column_width=70))


@contextmanager
def _finished(cuda: bool) -> Iterator[None]:
    yield
    if cuda:
        torch.cuda.synchronize()
