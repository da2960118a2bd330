"""However a run with workers ends, no process, shared memory or temporary file is left."""
from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.processes import words_of

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="reads /dev/shm and sends signals")]

PROGRAM = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored where the tests themselves run in the background
import torch
from functools import partial
from wavedash.envs.pool import WorkerPool
from tests.envs.toy_envs import Counter, Fault

def run(how):
    make = partial(Fault, "sleeps", at=3) if how == "stuck" else Counter
    env = WorkerPool(make, 4, 2, groups=2)
    env.reset(seed=0)
    print(os.getpid(), *[worker.pid for worker in env._supervisor.workers], flush=True)
    if how == "end":
        return
    for i in range(10**9):
        if how == "error" and i == 3:
            raise ValueError("bug in the learner")
        env.step(torch.zeros(4, dtype=torch.int64))

# No `if __name__ == "__main__":`, on purpose: workers must not run this again.
for how in sys.argv[2:]:
    if sys.argv[1] == "here":
        run(how)
    elif (child := os.fork()) == 0:  # a parent that need not import torch again
        run(how)
    else:
        os.waitpid(child, 0)
"""


@pytest.fixture
def start(tmp_path):
    """Starts a program that steps a pool, once for each way to end."""
    started = []

    def start(*arguments):
        script = tmp_path / "program.py"
        script.write_text(PROGRAM)
        (tmp_path / "temporary").mkdir()
        env = {**os.environ, "PYTHONPATH": os.getcwd(), "TMPDIR": str(tmp_path / "temporary"), "OMP_NUM_THREADS": "1"}
        started.append(subprocess.Popen([sys.executable, str(script), *arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, start_new_session=True, env=env))
        return started[-1]

    yield start
    for process in started:
        with suppress(ProcessLookupError):  # a test that failed
            os.killpg(process.pid, signal.SIGKILL)
    assert list((tmp_path / "temporary").iterdir()) == []


def parent_and_workers(process):
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert len(pids) == 3, process.stderr.read()
    return pids[0], pids[1:]


def alive(pids):
    return [pid for pid in pids if lives(pid)]


def lives(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def assert_gone(pids, seconds):
    deadline = time.monotonic() + seconds
    while alive(pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert alive(pids) == []


@pytest.fixture(autouse=True)
def nothing_new():
    """Compares named shared memory and temporary files before and after."""
    def listing():
        return {path for folder in ("/dev/shm", tempfile.gettempdir()) for path in Path(folder).iterdir()
                if path.name.startswith(("wavedash", "pymp-", "psm_", "sem."))}
    before = listing()
    yield
    assert listing() - before == set()


def test_twenty_kills_of_the_parent_leave_nothing(start):
    """Every other time a worker is stuck in a step, where it does not notice that its pipe is closed."""
    rng = random.Random(0)
    process = start("forked", *["steps", "stuck"] * 10)
    for _ in range(20):
        parent, workers = parent_and_workers(process)
        assert alive(workers) == workers
        time.sleep(rng.uniform(0, 0.1))
        os.kill(parent, signal.SIGKILL)
        assert_gone([parent, *workers], seconds=5)
    process.wait(timeout=5)


def test_ctrl_c_ends_parent_and_workers_without_noise_from_the_workers(start):
    process = start("here", "steps")
    parent, workers = parent_and_workers(process)
    os.killpg(parent, signal.SIGINT)  # as a terminal does: to every process of the group
    _, errors = process.communicate(timeout=15)
    assert process.returncode != 0
    assert errors.count("KeyboardInterrupt") == 1, errors
    assert_gone(workers, seconds=1)


def test_ctrl_c_while_workers_start_ends_them_without_noise(start):
    process = start("here", "steps")
    parent, workers = psutil.Process(process.pid), []
    while not workers:
        workers = [child.pid for child in parent.children() if "spawn_main" in " ".join(words_of(child))]
    time.sleep(0.1)  # they are importing, where Python would answer with a traceback
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=15)
    assert errors.count("KeyboardInterrupt") == 1, errors
    assert_gone(workers, seconds=1)


@pytest.mark.parametrize(("how", "code"), [("error", 1), ("end", 0)])
def test_an_exception_and_a_forgotten_close_leave_nothing(start, how, code):
    process = start("here", how)
    _, workers = parent_and_workers(process)
    _, errors = process.communicate(timeout=15)
    assert process.returncode == code, errors
    assert ("bug in the learner" in errors) == (how == "error")
    assert_gone(workers, seconds=1)
