"""A campaign of signals: real runs are stopped at random instants, and each must end well and resume exactly.

    python -m tests.runs.signals --count 200              # prints a table; exit code 1 if any case failed
    python -m tests.runs.signals --count 200 --folder F   # called again, it runs the cases that F does not have yet
    python -m tests.runs.signals --folder F --seconds 200 # begins no case after that time

Each case starts `wavedash train` in a session of its own and sends one of: two Ctrl-C 20 ms apart, one to three SIGTERM within
150 ms, one or two SIGHUP, all to the whole process group; or Ctrl-C typed into a terminal, or a terminal that is closed. Then:

- the process ended by itself, with the exit code of the signal, without a traceback, and nothing of its session is left;
- a run folder that was begun has a checkpoint with every iteration that was reported before the signal (except the last, if its
  report was still being written);
- `wavedash resume`, which may be stopped in the same way once more, ends with exactly the weights (SHA-256 of
  policy.safetensors) and the metrics of a run of the same seed that was never stopped.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import os
import pty
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import psutil

from tests import prepared

ROOT = Path(__file__).parents[2]
COMMON = ["threads=1", "report.tensorboard=false", "ppo.normalize_obs=true", "ppo.normalize_reward=true"]
KINDS = {
    "rocket-1v1": ["rocket-1v1", "env.count=64", "ppo.rollout_steps=16", "ppo.minibatch_size=1024", "ppo.epochs=2",
                   "policy.hidden=[64,64]", "total_steps=24000", "checkpoint.every=5000", "opponents.slots=4",
                   "opponents.snapshot_every=4000", "opponents.refresh_every=3"],
    "cartpole": ["cartpole", "env.workers=0", "ppo.epochs=4", "total_steps=8000", "checkpoint.every=3000"],
    "cartpole, 2 workers": ["cartpole", "env.workers=2", "env.groups=2", "ppo.epochs=4", "total_steps=8000",
                            "checkpoint.every=3000"],
}
WAYS = ("two Ctrl-C", "SIGTERM", "SIGHUP", "Ctrl-C in a terminal", "closed terminal")
CODES = {"two Ctrl-C": (130, -2), "Ctrl-C in a terminal": (130, -2), "SIGTERM": (143, -15), "SIGHUP": (129, -1),
         "closed terminal": (129, -1)}
"""Exit codes of a run that was saved, and of one that had not begun."""
END_SECONDS = 120.0
PYTHON_ITSELF = "Fatal Python error: init_import_site"
RUDE = ("Traceback", "Exception ignored", "could not save", "error:", "Fatal")


@dataclass
class Outcome:
    """The result of one case."""

    number: int
    kind: str
    way: str
    when: str
    state: str = ""
    """`saved`, `not begun` or `finished before`."""
    saved_step: int = -1
    code: int | None = None
    problems: list[str] = field(default_factory=list)


class Run:
    """A `wavedash` process in a session of its own, with or without a terminal. `imported`: it begins with its imports done."""

    def __init__(self, folder: Path, words: Sequence[str], terminal: bool, imported: bool = False) -> None:
        environment = {**os.environ, "WAVEDASH_RUNS": str(folder / "runs"), "PYTHONPATH": str(ROOT), "TERM": "xterm"}
        self.master, slave = pty.openpty() if terminal else os.pipe()
        self.terminal = terminal
        self._text: list[bytes] = []
        command, read = ["-m", "wavedash", *words], slave if terminal else subprocess.DEVNULL
        self.process: Any = prepared.Process(
            command, folder, environment, stdin=read, stdout=slave, stderr=slave, start_new_session=True, terminal=terminal,
        ) if imported else subprocess.Popen(
            [sys.executable, *command], cwd=folder, env=environment, stdin=read, stdout=slave, stderr=slave,
            start_new_session=True, preexec_fn=_take_terminal if terminal else _answer_ctrl_c,
        )
        os.close(slave)
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):  # the terminal has no other end any more
            while piece := os.read(self.master, 65536):
                self._text.append(piece)

    @property
    def text(self) -> str:
        return b"".join(self._text).decode(errors="replace")

    def send(self, way: str, rng: random.Random) -> None:
        group = self.process.pid
        with suppress(ProcessLookupError, OSError):
            if way == "two Ctrl-C":
                os.killpg(group, signal.SIGINT)
                time.sleep(0.02)
                os.killpg(group, signal.SIGINT)
            elif way == "Ctrl-C in a terminal":
                for _ in range(rng.choice((1, 2, 2))):
                    os.write(self.master, b"\x03")
                    time.sleep(0.02)
            elif way == "closed terminal":
                _hang_up(self)
            else:
                number = signal.SIGTERM if way == "SIGTERM" else signal.SIGHUP
                for _ in range(rng.randint(1, 3 if way == "SIGTERM" else 2)):
                    os.killpg(group, number)
                    time.sleep(rng.uniform(0, 0.05))

    def end(self) -> int | None:
        """The exit code, or None if the process had to be killed."""
        try:
            code: int | None = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        deadline = time.monotonic() + 5
        while (left := self.left_over()) and time.monotonic() < deadline and code is not None:
            time.sleep(0.02)
        self.left = [str(process) for process in left]
        for process in self.left_over():
            process.kill()
        if code is None:
            self.process.wait()
        self._reader.join(2)
        with suppress(OSError):
            os.close(self.master)
        return code

    def left_over(self) -> list[psutil.Process]:
        """Living processes of the session, except its leader."""
        leader_lives = self.process.returncode is None
        own = [pid for pid in psutil.pids() if _session(pid) == self.process.pid and (pid != self.process.pid or leader_lives)]
        living = []
        for pid in own:
            with suppress(psutil.Error, IndexError):  # it ended meanwhile
                process = psutil.Process(pid)
                if process.status() != psutil.STATUS_ZOMBIE:
                    living.append(process)
        return living


def _answer_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # it is ignored where the campaign itself runs in the background


def _take_terminal() -> None:
    import fcntl
    import termios

    _answer_ctrl_c()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _hang_up(run: Run) -> None:
    """Does what closing a terminal window does: the other end is gone, and the system sends SIGHUP."""
    master, run.master = run.master, -1  # closed once: another case may soon have a terminal of the same number
    os.close(master)


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return -1


def the_run(folder: Path) -> Path | None:
    """The run folder, once it exists."""
    return next((config.parent for config in folder.glob("runs/*/*/config.yaml")), None)


def lines_of(folder: Path) -> int:
    run = the_run(folder)
    with suppress(OSError):
        return (run / "metrics.jsonl").read_bytes().count(b"\n") if run else -1
    return 0 if run else -1


def steps_before_the_last(folder: Path) -> int:
    """The steps of the last but one reported iteration, or -1 if there are not so many."""
    run = the_run(folder)
    with suppress(OSError):
        lines = (run / "metrics.jsonl").read_bytes().splitlines(keepends=True) if run else []
        whole = [line for line in lines if line.endswith(b"\n")]
        return int(json.loads(whole[-2])["steps"]) if len(whole) > 1 else -1
    return -1


def ending(folder: Path) -> tuple[str, list[dict[str, float]]] | None:
    """The SHA-256 of the weights of a finished run, and its metrics without those of time."""
    finals = list(folder.glob("runs/*/*/final/step-*/policy.safetensors"))
    if not finals:
        return None
    run = the_run(folder)
    assert run is not None
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    told = [{name: x for name, x in line.items() if not name.startswith(("time/", "health/"))} for line in lines]
    return hashlib.sha256(finals[0].read_bytes()).hexdigest(), told


@dataclass
class Undisturbed:
    """The result of a run of this kind that is never stopped."""

    weights: str
    metrics: list[dict[str, float]]
    start_seconds: float
    iteration_seconds: float


def undisturbed(kind: str, folder: Path, imported: bool = False) -> Undisturbed:
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    run = Run(folder, ["train", *KINDS[kind], *COMMON], terminal=False, imported=imported)
    while lines_of(folder) < 1 and run.process.poll() is None:
        time.sleep(0.005)
    started = time.monotonic() - began
    code = run.end()
    assert code == 0, run.text
    result = ending(folder)
    assert result is not None, run.text
    seconds = sum(sum(x for name, x in json.loads(line).items() if name.startswith("time/") and "per_second" not in name)
                  for line in (the_run(folder) or folder).joinpath("metrics.jsonl").read_text().splitlines())
    return Undisturbed(*result, started, seconds / len(result[1]))


def case(number: int, kind: str, way: str, folder: Path, expected: Undisturbed) -> Outcome:
    """A run is stopped at an instant that the number of the case decides, then resumed to its end."""
    rng = random.Random(number)
    folder.mkdir(parents=True)
    run = Run(folder, ["train", *KINDS[kind], *COMMON], terminal="terminal" in way)
    when = _wait_for_the_instant(run, folder, expected, rng)
    outcome = Outcome(number, kind, way, when)
    begun, learned = the_run(folder) is not None, steps_before_the_last(folder)
    run.send(way, rng)
    _examine(outcome, run, way, folder, begun, learned)
    if outcome.state == "saved":
        again = rng.random() < 0.3
        words = ["resume", *(str(path) for path in [the_run(folder)] if path)]
        if again and ending(folder) is None:
            second = Run(folder, words, terminal="terminal" in way)
            time.sleep(rng.uniform(0, expected.start_seconds + 3 * expected.iteration_seconds))
            learned = steps_before_the_last(folder)
            second.send(way, rng)
            _examine(outcome, second, way, folder, True, learned)
        if ending(folder) is None:
            last = Run(folder, words, terminal=False)
            if last.end() != 0 or any(word in last.text for word in RUDE):
                outcome.problems.append(f"the resumed run did not end well: {last.text[-600:]}")
        _compare(outcome, folder, expected)
    return outcome


def _wait_for_the_instant(run: Run, folder: Path, expected: Undisturbed, rng: random.Random) -> str:
    iterations = len(expected.metrics)
    if rng.random() < 0.25:
        seconds = rng.uniform(0.05, expected.start_seconds)
        time.sleep(seconds)
        return f"{seconds:.2f} s after its start"
    after = rng.randint(-1, iterations - 1)
    while lines_of(folder) < after and run.process.poll() is None:
        time.sleep(0.002)
    seconds = rng.uniform(0, 1.5 * expected.iteration_seconds)
    time.sleep(seconds)
    return f"{seconds:.2f} s after iteration {after}"


def _examine(outcome: Outcome, run: Run, way: str, folder: Path, begun: bool, learned: int) -> None:
    code, problems = run.end(), outcome.problems
    path, finished = the_run(folder), ending(folder) is not None
    steps = [int(step.name[5:17]) for step in path.glob("checkpoints/step-*/")] if path else []
    outcome.code, outcome.saved_step = code, max(steps, default=-1)
    outcome.state = "saved" if steps else "not begun"
    if finished and code == 0:
        outcome.state = "finished before" if outcome.state != "saved" else "saved"
    if begun and not steps:
        problems.append("it had begun and has no checkpoint")
    elif outcome.saved_step < learned:
        problems.append(f"it was saved at step {outcome.saved_step}, but had learned from {learned} before the signal")
    if run.left:
        problems.append(f"processes are left: {run.left}")
    if code is None:
        problems.append(f"it did not end within {END_SECONDS:.0f} s")
    elif PYTHON_ITSELF not in run.text:  # else the signal came before a line of ours ran, and Python ends in its own way
        saved_code, early_code = CODES[way]
        if code not in (saved_code, early_code) and not (finished and code == 0):
            problems.append(f"exit code {code}")
        if rude := [word for word in RUDE if word in run.text]:
            problems.append(f"{', '.join(rude)} on the screen: {run.text[-1500:]}")


def _compare(outcome: Outcome, folder: Path, expected: Undisturbed) -> None:
    result = ending(folder)
    if result is None:
        outcome.problems.append("it has no end")
    elif result[0] != expected.weights:
        outcome.problems.append("its weights are not those of the undisturbed run")
    elif result[1] != expected.metrics:
        outcome.problems.append("its metrics are not those of the undisturbed run")


def campaign(count: int, folder: Path, jobs: int, kinds: Sequence[str], seconds: float,
             tell: Callable[[str], None]) -> list[Outcome]:
    """Runs the cases that `folder` has no outcome of yet, as far as time allows, and returns all outcomes that it then has."""
    deadline = time.monotonic() + seconds
    folder.mkdir(parents=True, exist_ok=True)
    record, code = folder / "outcomes.jsonl", folder / "code.txt"
    if code.exists() and code.read_text() != code_in_use():
        raise SystemExit(f"the code has changed since the cases in {folder} were played: name another folder")
    code.write_text(code_in_use())
    done = [Outcome(**json.loads(line)) for line in record.read_text().splitlines()] if record.exists() else []
    known = {outcome.number for outcome in done}
    expected: dict[str, Undisturbed] = {}
    for kind in kinds:
        place = folder / "undisturbed" / kind
        saved = place / "metrics.json"
        if not saved.exists():
            saved.write_text(json.dumps(asdict(undisturbed(kind, place))))
        expected[kind] = Undisturbed(**json.loads(saved.read_text()))

    def play(number: int) -> Outcome | None:
        if time.monotonic() > deadline:
            return None
        kind, way = kinds[number % len(kinds)], WAYS[number // len(kinds) % len(WAYS)]
        with tempfile.TemporaryDirectory(prefix=f"case-{number}-", dir=folder) as place:
            return case(number, kind, way, Path(place) / "it", expected[kind])

    with ThreadPoolExecutor(jobs) as pool:
        for outcome in pool.map(play, [number for number in range(count) if number not in known]):
            if outcome is None:
                continue
            done.append(outcome)
            with record.open("a") as file:
                file.write(json.dumps(asdict(outcome)) + "\n")
            tell(f"{outcome.number:>4} {outcome.kind:<20} {outcome.way:<21} {outcome.when:<27} {outcome.state} "
                 f"{outcome.saved_step} {' | '.join(outcome.problems) or 'ok'}")
    return done


def code_in_use() -> str:
    """A SHA-256 of the package: another version may train other weights."""
    sha = hashlib.sha256()
    for file in sorted((ROOT / "wavedash").rglob("*.py")):
        sha.update(file.read_bytes())
    return sha.hexdigest()


def table(outcomes: Sequence[Outcome]) -> str:
    rows = [f"{'':<21}{'way':<22}{'cases':>6}{'saved':>7}{'not begun':>11}{'finished':>10}{'failed':>8}"]
    for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
        for way in WAYS:
            those = [outcome for outcome in outcomes if (outcome.kind, outcome.way) == (kind, way)]
            states = Counter(outcome.state for outcome in those)
            failed = sum(bool(outcome.problems) for outcome in those)
            rows.append(f"{kind:<21}{way:<22}{len(those):>6}{states['saved']:>7}{states['not begun']:>11}"
                        f"{states['finished before']:>10}{failed:>8}")
    failed = sum(bool(outcome.problems) for outcome in outcomes)
    return "\n".join([*rows, f"{len(outcomes)} cases, {failed} failed"])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="keeps the outcomes, and goes on with them (default: a temporary one)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no case after so many")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        outcomes = campaign(options.count, folder, options.jobs, options.kinds, options.seconds,
                            lambda line: print(line, flush=True))
    print(table(outcomes))
    return int(any(outcome.problems for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
