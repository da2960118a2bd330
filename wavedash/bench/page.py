"""Training beside the page and its viewers: how much of its speed is left, and how late live frames are.

    wavedash bench page [--rounds 3] [--seconds 10] [--viewers 8] [PRESET KEY=VALUE]

One training goes on all the time, while pages and viewers start and end beside it. Viewers are connections of one process, and
take the newest frames as browsers do. The time of a frame is written by the game when it is made, and compared with the clock
when a viewer has it. The shares of a core tell what costs: the server, the game that it shows, or the viewers themselves.
"""
from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

from wavedash.errors import UserError
from wavedash.threads import allowed_cores

TASK = ["rocket-1v1", "env.count=64", "rating=null"]
WITHOUT, PAGE, VIEWERS, STILL = "no page", "page", "page, {} viewers", "page, {} viewers, training paused"
WARM_UP = 3
"""Iterations that are not counted"""
SETTLE = 2.0
"""Seconds that are not counted after something started or ended"""
PATIENCE = 300.0
"""Seconds that a training or a game may take to begin: the simulator may be compiled first"""
PROCESSES = ("server", "game", "viewers")


class Window(NamedTuple):
    """What was measured for some seconds."""

    rate: float
    """Steps of the training per second"""
    cores: dict[str, float]
    """Shares of a core, by process"""
    late: list[float]
    """Seconds between a frame and its arrival, of all frames and viewers"""
    frames: float
    """Frames per second and viewer"""


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--watch"]:  # the process of the viewers
        asyncio.run(_watch(arguments[1], int(arguments[2])))
        return
    parser = argparse.ArgumentParser(prog="wavedash bench page", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="measured in each round of each row")
    parser.add_argument("--viewers", type=int, default=8)
    parser.add_argument("task", nargs="*", default=TASK, metavar="PRESET KEY=VALUE")
    options = parser.parse_args(arguments)
    try:
        import psutil  # noqa: F401
    except ImportError:
        raise UserError("this benchmark tells processes apart by psutil: pip install psutil") from None
    found: dict[str, list[Window]] = {}
    with tempfile.TemporaryDirectory() as folder, _training(Path(folder), options.task) as training:
        for number in range(options.rounds):
            for name in (WITHOUT, PAGE, VIEWERS, STILL):
                print(f"round {number + 1}: {name.format(options.viewers)}", flush=True)
                with _beside(training, name, options.viewers) as measured:
                    found.setdefault(name, []).append(measured(options.seconds))
    _print(found, options)


class Training:
    """A training in a process of its own."""

    def __init__(self, folder: Path, task: list[str]) -> None:
        self.root, self.said = folder, folder / "said.txt"
        words = [*task, "total_steps=1000000000000", "report.console=plain", "report.tensorboard=false"]
        with self.said.open("w") as said:
            self.process = subprocess.Popen([sys.executable, "-m", "wavedash", "train", *words], stdout=said, stderr=said,
                                            env={**os.environ, "WAVEDASH_RUNS": str(folder)})

    @property
    def run(self) -> Path | None:
        """Its folder, once it has learned something."""
        if self.process.poll() is not None:
            raise UserError(f"the training ended:\n{self.said.read_text()}")
        files = self.root.glob("*/*/metrics.jsonl")
        return next((path.parent for path in files if path.read_bytes().count(b"\n") > WARM_UP), None)

    def steps(self) -> int:
        run = self.run
        assert run is not None
        last = (run / "metrics.jsonl").read_bytes().splitlines()[-2:]
        return max(json.loads(line)["steps"] for line in last if line.endswith(b"}"))

    def order(self, word: str) -> None:
        from wavedash.runs.inbox import Request, ask

        run = self.run
        assert run is not None
        if (answer := ask(run, Request(orders=(word,), by="bench"), PATIENCE)) is None or not answer.done:
            raise UserError(f"the training does not {word}: {answer}")


@contextmanager
def _training(folder: Path, task: list[str]) -> Iterator[Training]:
    training = Training(folder, task)
    try:
        _until(lambda: training.run, "the training has not begun")
        training.order("save")  # so that there is somebody to watch
        yield training
    finally:
        training.process.kill()
        training.process.wait()


@contextmanager
def _beside(training: Training, name: str, viewers: int) -> Iterator[Callable[[float], Window]]:
    """Starts what a row of the table needs beside the training. Yields the function that measures."""
    with ExitStack() as stack:
        if name == STILL:
            training.order("pause")
            stack.callback(training.order, "continue")
        page = None if name == WITHOUT else stack.enter_context(_page(training))
        crowd = stack.enter_context(_crowd(page.link, viewers)) if page is not None and name != PAGE else None
        time.sleep(SETTLE)
        yield lambda seconds: _measure(training, page, crowd, seconds)


def _measure(training: Training, page: Any, crowd: subprocess.Popen[str] | None, seconds: float) -> Window:
    if crowd is not None:
        _tell(crowd, "begin")
    began, steps = _at_step(training)
    before = _used(page, crowd)
    time.sleep(seconds)
    ended, done = _at_step(training)
    cores = {name: (used - before[name]) / (ended - began) for name, used in _used(page, crowd).items()}
    seen: dict[str, Any] = {"late": [], "frames": 0.0} if crowd is None else _tell(crowd, "end")
    return Window((done - steps) / (ended - began), cores, seen["late"], seen["frames"])


def _used(page: Any, crowd: subprocess.Popen[str] | None) -> dict[str, float]:
    """Seconds that each process has used a core so far. Those of the game count all games since the page began."""
    import psutil

    used: dict[str, float] = {}
    if page is not None:
        server = psutil.Process(page.pid)
        times = server.cpu_times()
        used["server"] = times.user + times.system
        used["game"] = times.children_user + times.children_system  # of those that have ended
        for child in server.children():
            with suppress(psutil.Error):
                used["game"] += sum(child.cpu_times()[:2])
    if crowd is not None:
        used["viewers"] = sum(psutil.Process(crowd.pid).cpu_times()[:2])
    return used


def _at_step(training: Training, patience: float = 3.0) -> tuple[float, int]:
    """When an iteration ends, and the steps until then: so that whole iterations are counted. A training that is paused ends
    none."""
    first, end = training.steps(), time.perf_counter() + patience
    while (steps := training.steps()) == first and time.perf_counter() < end:
        time.sleep(0.005)
    return time.perf_counter(), steps


@contextmanager
def _page(training: Training) -> Iterator[Any]:
    from wavedash.web.beside import PageBeside

    before = os.environ.get("WAVEDASH_RUNS")
    os.environ["WAVEDASH_RUNS"] = str(training.root)
    try:
        page = PageBeside(trainer=training.process.pid)
    finally:
        os.environ.pop("WAVEDASH_RUNS") if before is None else os.environ.update(WAVEDASH_RUNS=before)
    try:
        if page.wait() is None:
            raise UserError("the page does not start")
        yield page
    finally:
        page.close()


@contextmanager
def _crowd(link: str, viewers: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", "import sys; from wavedash.bench.page import main; main(sys.argv[1:])", "--watch", link,
               str(viewers)]
    crowd = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert crowd.stdout is not None
        if not crowd.stdout.readline():
            raise UserError(f"the viewers see no game within {PATIENCE:g} seconds")
        yield crowd
    finally:
        crowd.kill()
        crowd.wait()


def _tell(crowd: subprocess.Popen[str], word: str) -> Any:
    assert crowd.stdin is not None and crowd.stdout is not None
    crowd.stdin.write(f"{word}\n")
    crowd.stdin.flush()
    return json.loads(crowd.stdout.readline())


async def _watch(link: str, viewers: int) -> None:
    """The process of the viewers: they watch until it is killed, and tell what they saw between `begin` and `end`."""
    from websockets.asyncio.client import connect
    from websockets.typing import Origin, Subprotocol

    late: list[float] = []
    ready = [asyncio.Event() for _ in range(viewers)]
    host, token = urlsplit(link).netloc, urlsplit(link).fragment.partition("=")[2]

    async def view(number: int) -> None:
        offered = [Subprotocol("wavedash"), Subprotocol(f"token.{token}")]
        async with connect(f"ws://{host}/api/watch", subprotocols=offered, origin=Origin(f"http://{host}"), max_size=None,
                           compression=None) as socket:
            async for message in socket:
                if isinstance(message, bytes):
                    late.append(time.time() - struct.unpack_from("<Id", message)[1])
                    ready[number].set()

    watching = [asyncio.create_task(view(number)) for number in range(viewers)]
    try:
        await asyncio.wait_for(asyncio.gather(*(event.wait() for event in ready)), PATIENCE)
    except TimeoutError:
        return  # without a word, which is an answer too
    print("ready", flush=True)
    began = 0.0
    while word := (await asyncio.to_thread(sys.stdin.readline)).strip():
        seen, seconds = list(late), time.perf_counter() - began
        late.clear()
        began = time.perf_counter()
        print(json.dumps({"late": seen, "frames": len(seen) / viewers / seconds} if word == "end" else {}), flush=True)
    for task in watching:
        task.cancel()


def _print(found: dict[str, list[Window]], options: Any) -> None:
    title = (f"{' '.join(options.task)} on {allowed_cores()} cores, {options.rounds} rounds of {options.seconds:g} s: speed of "
             "the training, shares of one core, frames per second and viewer, and how late they are (ms)")
    table = Table(title=title, title_justify="left")
    for column in ("", "steps/s", "of no page", *PROCESSES, "frames/s", "p50", "p99"):
        table.add_column(column, justify="left" if not column else "right")
    alone = [window.rate for window in found[WITHOUT]]
    for name, windows in found.items():
        rates = [window.rate for window in windows]
        speed = [f"{statistics.median(rates):,.0f}", _percent(rate / first for rate, first in zip(rates, alone, strict=True))]
        cores = [_percent(window.cores[process] for window in windows if process in window.cores) for process in PROCESSES]
        late = sorted(1000 * seconds for window in windows for seconds in window.late)
        frames = [f"{statistics.median(window.frames for window in windows):.1f}"] if late else []
        table.add_row(name.format(options.viewers), *(["", ""] if name == STILL else speed), *cores, *frames,
                      *(f"{late[int(len(late) * part)]:.1f}" for part in (0.5, 0.99) if late))
    Console(width=140, highlight=False).print(table)


def _percent(values: Iterable[float]) -> str:
    known = list(values)
    return f"{100 * statistics.median(known):.1f} %" if known else ""


def _until(what: Callable[[], Any], why: str) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        if time.monotonic() > end:
            raise UserError(f"{why} within {PATIENCE:g} seconds")
        time.sleep(0.1)
