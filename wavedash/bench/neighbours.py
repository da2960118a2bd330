"""Training beside programs that want the same CPU cores: how much of its speed is left.

    wavedash bench neighbours [--rounds 3] [--seconds 10] [--beside NAME] [--setting threads=1] [PRESET KEY=VALUE]

Every setting trains in a process of its own, which goes on while its neighbours start and end; only one trains at a time. The
neighbours are endless loops, and an LZMA compressor with a process for each core.
"""
from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from threading import Thread
from time import monotonic, sleep
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from wavedash.errors import UserError
from wavedash.threads import allowed_cores

LOOP = "while True: pass"
COMPRESSOR = "import lzma, os\ndata = os.urandom(1 << 22)\nwhile True: lzma.compress(data)"
BESIDE = {
    "alone": [],
    "one busy loop": [LOOP],
    "two busy loops": [LOOP] * 2,
    "a compressor": [COMPRESSOR] * allowed_cores(),
}
"""Programs that run beside the training, by name."""
AS_IT_IS = "as it is"
WARM_UP = 2
"""Iterations that are not counted."""
SETTLE = 1.0
"""Seconds that are not counted after neighbours started or ended."""


class Iteration(NamedTuple):
    """When an iteration ended, how long it took, how many steps it had, and how long its update took."""

    end: float
    seconds: float
    steps: int
    update: float


class Speed(NamedTuple):
    """Steps per second, and the update's share of the time."""

    rate: float
    update: float


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="wavedash bench neighbours", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="measured in each round beside each neighbour")
    parser.add_argument("--beside", choices=BESIDE, action="append", help="default: all")
    parser.add_argument("--setting", action="append", help="VARIABLE=VALUE or KEY=VALUE, trained as well; any number of them")
    parser.add_argument("task", nargs="*", default=["rocket-1v1"], metavar="PRESET KEY=VALUE")
    options = parser.parse_args(arguments)
    beside = ["alone", *(name for name in BESIDE if name in (options.beside or BESIDE) and name != "alone")]
    table = Table(title=f"{' '.join(options.task)} on {allowed_cores()} cores: steps per second, share of what it is alone, "
                        "share of the time that updates take", title_justify="left")
    table.add_column("")
    for name in beside:
        table.add_column(name, justify="right")
    for name in [AS_IT_IS, *(options.setting or [])]:
        variables, changes = _setting(name)
        speeds = _measure([*options.task, *changes], variables, beside, options.rounds, options.seconds)
        alone = speeds["alone"].rate
        row = [f"{x.rate:,.0f}  {x.rate / alone:4.0%}  {x.update:3.0%}" for x in speeds.values()]
        print(name, *row, sep="\t", flush=True)
        table.add_row(name, *row)
    Console(width=150, highlight=False).print(table)


def _setting(name: str) -> tuple[dict[str, str], list[str]]:
    """The environment variables and the options that a setting changes."""
    if name == AS_IT_IS:
        return {}, []
    variable, _, value = name.partition("=")
    return ({variable: value}, []) if variable.isupper() else ({}, [name])


def _measure(task: list[str], variables: dict[str, str], beside: list[str], rounds: int, seconds: float
             ) -> dict[str, Speed]:
    """Medians over all iterations that lay wholly in a window in which the neighbours ran."""
    found: dict[str, list[Iteration]] = {name: [] for name in beside}
    with _training(task, variables) as trained:
        for _ in range(WARM_UP):
            _next(trained)
        for _ in range(rounds):
            for name in beside:
                with _running(BESIDE[name]):
                    sleep(SETTLE)
                    found[name] += _window(trained, seconds)
    return {name: Speed(statistics.median(x.steps / x.seconds for x in each),
                        statistics.median(x.update / x.seconds for x in each)) for name, each in found.items()}


def _window(trained: Queue[Iteration | str], seconds: float) -> list[Iteration]:
    """The iterations that begin within so many seconds from now, at least two."""
    began, inside = monotonic(), list[Iteration]()
    while monotonic() < began + seconds or len(inside) < 2:
        iteration = _next(trained)
        if iteration.end - iteration.seconds >= began:
            inside.append(iteration)
    return inside


def _next(trained: Queue[Iteration | str]) -> Iteration:
    iteration = trained.get(timeout=300)
    if isinstance(iteration, str):
        raise UserError(f"training ended:\n{iteration[-2000:]}")
    return iteration


@contextmanager
def _running(programs: list[str]) -> Iterator[None]:
    started = [subprocess.Popen([sys.executable, "-c", program]) for program in programs]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


@contextmanager
def _training(task: list[str], variables: dict[str, str]) -> Iterator[Queue[Iteration | str]]:
    """Start a process that trains; yields a queue of its iterations as they end, and of its last words if it fails."""
    environ = {**os.environ, "PYTHONUNBUFFERED": "1", **variables}
    command = [sys.executable, "-m", "wavedash.bench.neighbours", *task]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=environ) as process:
        ended: Queue[Iteration | str] = Queue()
        Thread(target=_listen, args=(process, ended), daemon=True).start()
        try:
            yield ended
        finally:
            process.kill()


def _listen(process: subprocess.Popen[str], ended: Queue[Iteration | str]) -> None:
    """Put each line that a training process prints into the queue, and its errors when it ends."""
    assert process.stdout is not None and process.stderr is not None
    for line in process.stdout:
        seconds, steps, update = line.split()
        ended.put(Iteration(monotonic(), float(seconds), int(steps), float(update)))
    ended.put(process.stderr.read())


def train(task: list[str]) -> None:
    """Train for ever and print a line for every iteration; the training process runs this."""
    from wavedash.assembly import assembled
    from wavedash.config_file import load_config

    source, *changes = task
    with assembled(load_config(source, [*changes, "total_steps=1_000_000_000_000"])) as learner:
        learner.start()
        while True:
            report = learner.iterate()
            print(sum(report.seconds.values()), int(report.metrics["rollout/steps"]), report.seconds["update"])


if __name__ == "__main__":
    train(sys.argv[1:])
