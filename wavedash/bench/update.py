"""Whole iterations on an environment that costs nothing: what precision, compilation and CUDA graphs each bring.

    wavedash bench update [--rows N] [--steps N] [--minibatch N] [--iterations N] [--small]

The table has one row per size of network, with and without memory; on a GPU each switch alone and all together.
"""
from __future__ import annotations

import argparse
import statistics
from time import perf_counter
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from wavedash.assembly import make_policy
from wavedash.bench.synthetic import SyntheticEnv
from wavedash.config import EnvConfig, MemoryConfig, PolicyConfig, PPOConfig, RunConfig
from wavedash.ppo.learner import Learner

NETWORKS = {"256x3": [256] * 3, "512x3": [512] * 3, "1024x4": [1024] * 4}
SWITCHES: dict[str, dict[str, Any]] = {
    "fp32": {"graphs": False},
    "bf16": {"graphs": False, "precision": "bf16"},
    "bf16 + graphs": {"precision": "bf16"},
    "bf16 + compile": {"graphs": False, "precision": "bf16", "compile": True},
    "bf16 + compile + graphs": {"precision": "bf16", "compile": True},
}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="wavedash bench update", description=(__doc__ or "").splitlines()[0])
    cuda = torch.cuda.is_available()
    parser.add_argument("--rows", type=int, default=65536 if cuda else 64)
    parser.add_argument("--steps", type=int, default=24 if cuda else 48)
    parser.add_argument("--minibatch", type=int, default=65536 if cuda else 512)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--network", choices=NETWORKS, action="append")
    parser.add_argument("--switch", choices=SWITCHES, action="append")
    parser.add_argument("--memory", choices=["none", "gru", "lstm"], action="append")
    options = parser.parse_args(arguments)
    where = torch.cuda.get_device_name() if cuda else "CPU"
    table = Table(title=f"samples per second of whole iterations: {options.rows} rows x {options.steps} steps, 2 epochs, "
                        f"minibatches of {options.minibatch}, {where}", title_justify="left")
    for column in ("network", "memory", "switches"):
        table.add_column(column)
    for column in ("samples/s", "collect ms", "update ms", "KL", "clip", "update size", "peak GB"):
        table.add_column(column, justify="right")
    console = Console(width=150, highlight=False)
    for network in options.network or NETWORKS:
        for memory in options.memory or ["none", "gru"]:
            for name in options.switch or (SWITCHES if cuda else ["fp32"]):
                row = measure(options, NETWORKS[network], memory, SWITCHES[name])
                table.add_row(network, memory, name, *row)
                print(network, memory, name, *row, flush=True)
    console.print(table)


def measure(options: argparse.Namespace, hidden: list[int], memory: Any, switches: dict[str, Any]) -> list[str]:
    cuda = torch.cuda.is_available()
    config = RunConfig(
        env=EnvConfig(id="synthetic"), total_steps=10**12,
        policy=PolicyConfig(hidden=hidden, activation="relu", memory=MemoryConfig(kind=memory, size=256, sequence=24)),
        ppo=PPOConfig(rollout_steps=options.steps, minibatch_size=options.minibatch, epochs=2), **switches,
    )
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    env = SyntheticEnv(options.rows, "cuda" if cuda else "cpu")
    learner = Learner(env, make_policy(env, config), config)
    learner.start()
    for _ in range(4):  # compilation and capture of CUDA graphs
        learner.iterate()
    times, report = [], None
    for _ in range(options.iterations):
        began = perf_counter()
        report = learner.iterate()
        times.append(perf_counter() - began)
    assert report is not None
    metrics, seconds = report.metrics, report.seconds
    collect = sum(x for name, x in seconds.items() if name not in ("update", "other"))
    return [
        f"{options.rows * options.steps / statistics.median(times):,.0f}",
        f"{1e3 * collect:.1f}", f"{1e3 * seconds['update']:.1f}",
        f"{metrics['policy/kl']:.4f}", f"{metrics['policy/clip_fraction']:.3f}", f"{metrics['optim/update_size']:.3f}",
        f"{torch.cuda.max_memory_allocated() / 2**30:.1f}" if cuda else "",
    ]
