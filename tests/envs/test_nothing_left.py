"""However a run with workers ends, no process, shared memory or temporary file stays behind."""
from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="looks at /dev/shm and sends signals")

PROGRAM = """
import sys, torch
from functools import partial
from wavedash.envs.pool import WorkerPool
from tests.envs.toy_envs import Counter, Fault

def run(how):
    make = partial(Fault, "sleeps", at=3) if how == "stuck" else Counter
    env = WorkerPool(make, 4, 2, groups=2)
    env.reset(seed=0)
    print("pids", *[worker._process.pid for worker in env._workers], flush=True)
    if how == "end":
        return
    for i in range(10**9):
        if how == "error" and i == 3:
            raise ValueError("bug in the learner")
        env.step(torch.zeros(4, dtype=torch.int64))

if __name__ == "__main__":
    run(sys.argv[1])
"""


def start(tmp_path, how):
    """A program that steps a pool; returns it with the pids of its workers."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    temporary = tmp_path / "temporary"
    temporary.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, str(script), how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.getcwd(), "TMPDIR": str(temporary), "OMP_NUM_THREADS": "1"})
    pids = process.stdout.readline().split()
    assert pids[:1] == ["pids"], process.stderr.read()
    return process, [int(pid) for pid in pids[1:]]


def alive(pids):
    return [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]


def assert_gone(pids, seconds):
    deadline = time.monotonic() + seconds
    while alive(pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert alive(pids) == []


@pytest.fixture
def nothing_new():
    """Compares shared memory and temporary files before and after. The test's own folder is not looked at."""
    def listing():
        return {str(path) for folder in ("/dev/shm", tempfile.gettempdir()) for path in Path(folder).glob("*wavedash*")} | {
            str(path) for folder in ("/dev/shm", tempfile.gettempdir()) for path in Path(folder).glob("pymp*")}
    before = listing()
    yield
    assert listing() - before == set()


@pytest.mark.usefixtures("nothing_new")
def test_twenty_kills_of_the_parent_leave_nothing(tmp_path):
    """Half of the time a worker is stuck in a step, where it does not see that the pipe is closed."""
    rng = random.Random(0)
    running = []
    for i in range(20):
        running.append(start(tmp_path, "steps" if i % 2 else "stuck"))
        if len(running) == 2:  # two at a time, to use both cores
            time.sleep(rng.uniform(0, 0.2))
            for process, _ in running:
                process.kill()
            for process, pids in running:
                process.wait()
                assert_gone(pids, seconds=5)
            running.clear()
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.usefixtures("nothing_new")
def test_ctrl_c_ends_parent_and_workers_without_noise_from_the_workers(tmp_path):
    process, pids = start(tmp_path, "steps")
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of the group
    _, errors = process.communicate(timeout=15)
    assert process.returncode != 0
    assert errors.count("KeyboardInterrupt") == 1, errors
    assert_gone(pids, seconds=1)
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize(("how", "code"), [("error", 1), ("end", 0)])
@pytest.mark.usefixtures("nothing_new")
def test_an_exception_and_a_forgotten_close_leave_nothing(tmp_path, how, code):
    process, pids = start(tmp_path, how)
    _, errors = process.communicate(timeout=15)
    assert process.returncode == code, errors
    assert ("bug in the learner" in errors) == (how == "error")
    assert_gone(pids, seconds=1)
