"""What seeing is worth to a walking robot: one that is told the heights of the ground, a blind one, and one with a camera.

    wavedash bench seeing [--teachers MINUTES] [--camera MINUTES] [--robots N] [--camera-robots N] [--no-table]
                          [--terrain NAME,...] [--levels NUMBER,...] [--episodes N] [--on cpu] [--out FOLDER] [OVERRIDE ...]

It trains `walk-rough` and `walk-blind` side by side for so many minutes, then `walk-see`, whose teacher is the first of them,
and lets all walk the same course. Times are those of a clock, from the start of the processes on, with the compilation of
kernels. The runs stay in runs/, and another call goes on with them, so that parts can be done one by one: 0 minutes leave a
part out. A camera's run goes on with the teacher that it began with. Policies are kept in FOLDER too, small enough to be taken
elsewhere: with WAVEDASH_RUNS=FOLDER there, they walk the course again.

What is printed: the mean level of each kind of terrain while the teachers learned, then how far all of them come. The noisy map
is the policy that is told the heights, with errors of 7 cm. `--on cpu` lets them walk in MuJoCo, whatever they were trained in.
"""
from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wavedash.errors import UserError
from wavedash.loading import load_run
from wavedash.runs.find import resolve_policy, run_at
from wavedash.runs.folder import runs_root
from wavedash.runs.inbox import Request, ask
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.runs.trust import run_config
from wavedash.walk.evaluate.comparison import compare
from wavedash.walk.evaluate.results import WalkingResult, short, table
from wavedash.walk.evaluate.walking import evaluate_walking

VISION, BLIND, CAMERA = "seeing-vision", "seeing-blind", "seeing-camera"
"""Names of runs"""
TEACHERS = {VISION: "walk-rough", BLIND: "walk-blind"}
"""Their presets"""
COLUMNS = (("vision", VISION, False), ("noisy map", VISION, True), ("blind", BLIND, False), ("camera", CAMERA, False))
"""Of the table: their runs, and whether sensors make errors"""
LEVEL = "env/level/"
STEPS, MINIBATCHES = 24, 8
"""Of a rollout"""
END = 0.7
"""The share of its time after which the student learns with `LAST_RATE`. A schedule cannot do it: it counts steps, and how many
fit into the time is not known before"""
LAST_RATE = 1e-4
POINTS = 10
"""Lines of the table of levels"""
PATIENCE = 120.0
"""s that a run may take to finish an iteration and to save"""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="wavedash bench seeing", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--teachers", type=float, default=20.0, metavar="MINUTES")
    parser.add_argument("--camera", type=float, default=5.0, metavar="MINUTES")
    parser.add_argument("--robots", type=int, default=4_096)
    parser.add_argument("--camera-robots", type=int, default=1_024)
    parser.add_argument("--no-table", action="store_true", help="only train")
    parser.add_argument("--terrain", default="slope,rough,stairs_up,stairs_down,obstacles,stones,gaps")
    parser.add_argument("--levels", default=",".join(map(str, range(10))))
    parser.add_argument("--episodes", type=int, default=20, help="robots on each tile")
    parser.add_argument("--on", choices=["cpu"], help="where they walk the course; by default where they were trained")
    parser.add_argument("--out", type=Path, default=Path("seeing"), help="a folder for logs, tables and policies")
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="of all runs")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.teachers:
        train(TEACHERS, options.teachers, [*sized(options.robots), *options.overrides], options.out)
        for name in TEACHERS:
            print_levels(name)
    if options.camera:
        student = [f"distill.teacher={runs_root() / VISION}", "total_steps=1_000_000_000", "ppo.schedule={kind: constant}"]
        train({CAMERA: "walk-see"}, options.camera, [*sized(options.camera_robots), *student, *options.overrides], options.out,
              LAST_RATE)
    if not options.no_table:
        course = {"robots": options.episodes, "terrain": options.terrain.split(","),
                  "levels": [int(level) for level in options.levels.split(",")]}
        results = walked(course, options.on == "cpu")
        print_distances(results)
        text = json.dumps({name: result.plain() for name, result in results.items()})
        (options.out / "seeing.json").write_text(text + "\n", encoding="utf-8")


def sized(robots: int) -> list[str]:
    return [f"env.count={robots}", f"ppo.minibatch_size={robots * STEPS // MINIBATCHES}"]


def train(presets: Mapping[str, str], minutes: float, overrides: Sequence[str], out: Path,
          last_rate: float | None = None) -> None:
    """Trains runs side by side, each in a process of its own, and stops them after so many minutes. `last_rate`: their learning
    rate at the end."""
    began = time.monotonic()
    runs = [Training(preset, name, overrides, out / f"{name}.log") for name, preset in presets.items()]
    try:
        if last_rate is not None:
            wait(runs, began + 60.0 * END * minutes)
            for run in runs:
                run.tell(Request({"ppo.learning_rate": last_rate}))
        wait(runs, began + 60.0 * minutes)
        for run in runs:
            run.tell(Request(orders=("stop",)))
        for run in runs:
            run.process.wait(PATIENCE)
            run.keep(out / run.name)
    finally:
        for run in runs:
            run.process.kill()


class Training:
    """A process that trains a run, or goes on with the one of this name."""

    def __init__(self, preset: str, name: str, overrides: Sequence[str], log: Path) -> None:
        self.name, self.log = name, log
        self.before = newest(name)
        command = [sys.executable, "-m", "wavedash", "train", preset, "--resume", "auto", f"name={name}", *overrides]
        with log.open("ab") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)

    @property
    def learns(self) -> bool:
        """Whether it has done an iteration. UserError: the process has ended."""
        if self.process.poll() is not None:
            raise UserError(f"{self.name} ended too soon:\n{self.log.read_text(encoding='utf-8')[-2_000:]}")
        return newest(self.name) != self.before

    def tell(self, request: Request) -> None:
        answer = ask(run_at(runs_root() / self.name).path, request, PATIENCE)
        if answer is None or not answer.done:
            raise UserError(f"{self.name} does not answer" if answer is None else f"{self.name}: {answer.said}")

    def keep(self, folder: Path) -> None:
        """Writes the policy, small enough to be taken to another machine, in the place of the one that there may be."""
        shutil.rmtree(folder, ignore_errors=True)
        checkpoint = resolve_policy(runs_root() / self.name)
        tensors, state = checkpoint.load(["policy"])
        PolicyFolder.write(folder, run_config(checkpoint.run_config), tensors["policy"], state)


def wait(runs: Sequence[Training], until: float) -> None:
    """Waits for a time of the monotonic clock, and until all of them learn."""
    while not all(run.learns for run in runs) or time.monotonic() < until:
        time.sleep(0.2)


def newest(name: str) -> str | None:
    """The last line of the metrics of the newest run of this name."""
    try:
        rows = rows_of(name)
    except (UserError, OSError):
        return None
    return rows[-1] if rows else None


def rows_of(name: str) -> list[str]:
    return (run_at(runs_root() / name).path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()


def print_levels(name: str) -> None:
    """The mean level of the robots on each kind of terrain, from the beginning of a run to its end."""
    rows = [json.loads(line) for line in rows_of(name)]
    kinds = [key for key in rows[-1] if key.startswith(LEVEL)]
    shown = [rows[round(i * (len(rows) - 1) / POINTS)] for i in range(1, POINTS + 1)]
    print(f"\n{name}: mean levels of 0 to 9")
    cells = [[f"{row['steps'] / 1e6:,.1f}", *(f"{row[kind]:.1f}" for kind in kinds)] for row in shown]
    print("\n".join(table([["million steps", *(short(kind.removeprefix(LEVEL)) for kind in kinds)], *cells], right=True)))


def walked(course: Mapping[str, Any], on_cpu: bool) -> dict[str, WalkingResult]:
    """How far the policies of all runs come that there are."""
    results = {}
    for column, name, noisy in COLUMNS:
        if (runs_root() / name).is_dir():
            loaded = load_run(runs_root() / name)
            results[column] = evaluate_walking(loaded if on_cpu else loaded.to_run_device(), noisy=noisy, **course)
            print(f"{column} has walked the course", flush=True)
    if not results:
        raise UserError("there are no runs to compare: train some first (--teachers MINUTES)")
    return results


def print_distances(results: Mapping[str, WalkingResult]) -> None:
    """All of them side by side, and the levels that each distance is the mean of."""
    print(f"\n{compare(results)}")
    first = next(iter(results.values()))
    for kind in first.terrains:
        head = [f"{short(kind)}, m", f"level {first.levels[0]}", *map(str, first.levels[1:])]
        rows = [[name, *(f"{result.on(kind, level).distance:.1f}" for level in result.levels)]
                for name, result in results.items()]
        print("\n" + "\n".join(table([head, *rows], right=True)))
