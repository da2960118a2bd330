"""Processes with their imports done are otherwise like those that Python starts itself, and end like them."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests import prepared

pytestmark = pytest.mark.skipif(not prepared.FORKS, reason="here such processes import everything by themselves")

LOOK = """
import json, os, random, signal, sys
loaded = "torch" in sys.modules
import numpy as np
import torch
print(json.dumps({
    "arguments": sys.argv, "path": sys.path,
    "folder": os.getcwd(), "variables": dict(os.environ), "module": __name__, "main": sys.modules["__main__"].__name__,
    "given": sys.stdin.read(), "signals": [str(signal.getsignal(number)) for number in (2, 1, 15, 13)],
    "encodings": [sys.stdout.encoding, sys.stderr.errors], "threads": torch.get_num_threads(),
    "streams": sorted(os.listdir("/proc/self/fd"))[:3],
}))
print(loaded, os.getpid(), os.urandom(8).hex(), random.random(), torch.rand(1).item(), np.random.rand(), file=sys.stderr)
sys.exit(7)
"""


def _ignore_nothing() -> None:
    for number in (signal.SIGINT, signal.SIGHUP):  # they are ignored where the tests run in the background
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize("added", [[], ["mine", prepared.ROOT]])
def test_it_sees_what_a_process_sees_that_python_starts(tmp_path: Path, added: list[str | Path]) -> None:
    """The reference is one that imports everything by itself; only what it imports is there before it begins."""
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "ONLY": "ä"}
    if added:
        variables["PYTHONPATH"] = os.pathsep.join(str(tmp_path / path) for path in added)
    words = ["-c", LOOK, "train", "--name", "ß"]
    ours = prepared.run(words, tmp_path, variables, given="hello")
    theirs = subprocess.run([sys.executable, *words], cwd=tmp_path, env=variables, input="hello", capture_output=True,
                            text=True, preexec_fn=_ignore_nothing)
    assert (ours.returncode, theirs.returncode) == (7, 7), ours.stderr + theirs.stderr
    assert json.loads(ours.stdout) == json.loads(theirs.stdout)
    assert (ours.stderr.split()[0], theirs.stderr.split()[0]) == ("True", "False")


def test_no_two_share_a_number_or_a_random_stream(tmp_path: Path) -> None:
    said = [prepared.run(["-c", LOOK], tmp_path).stderr.split() for _ in range(3)]
    assert all(len(set(column)) == 3 for column in list(zip(*said, strict=True))[1:])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_is_its_exit_code(number: int) -> None:
    process = prepared.popen(["-c", "import time; print('begun', flush=True); time.sleep(1000)"], stdout=prepared.PIPE,
                             stderr=prepared.DEVNULL)
    assert process.stdout.readline() == "begun\n" and process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.send_signal(number)
    assert process.wait(60.0) == process.poll() == -number
    assert process.stdout.read() == "" and not psutil.pid_exists(process.pid)


def test_a_module_and_a_file_run_as_the_main_program_with_what_they_do_at_exit(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("number = 5\n")
    (tmp_path / "it.py").write_text("import atexit, beside, sys\natexit.register(print, 'end')\n"
                                    "print(__name__, sys.argv, beside.number)\n")
    for words in (["it.py", "x"], ["-m", "it", "x"]):
        ours = prepared.run(words, tmp_path)
        theirs = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert ours.stdout == theirs.stdout and ours.stdout.endswith("end\n")


def test_an_error_is_a_traceback_and_code_1(tmp_path: Path) -> None:
    done = prepared.run(["-c", "1 / 0"], tmp_path)
    assert done.returncode == 1 and done.stderr.endswith("ZeroDivisionError: division by zero\n")
