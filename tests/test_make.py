"""`make train` at a real terminal: a Ctrl-C that saved the run is no error for make, a failure is."""
from __future__ import annotations

import os
import shutil
import sys
import time

import pytest

if sys.platform == "win32" or shutil.which("make") is None:
    pytest.skip("needs make and a terminal", allow_module_level=True)

import pty

from tests.runs.signals import ROOT, lines_of, the_run

pytestmark = pytest.mark.slow


@pytest.fixture
def make(tmp_path):
    """Starts `make train` of the Makefile as it is, with everything installed already."""
    program = tmp_path / ".venv/bin/wavedash"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m wavedash "$@"\n')
    program.chmod(0o755)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    time.sleep(0.01)
    for stamp in (".torch", ".installed-rocket,mujoco"):
        (tmp_path / ".venv" / stamp).touch()
    started = []

    def start(recipe: str):
        pid, terminal = pty.fork()
        if pid == 0:
            for name in ("MAKELEVEL", "MAKEFLAGS", "MFLAGS"):  # of the make that runs these tests
                os.environ.pop(name, None)
            os.environ |= {"WAVEDASH_RUNS": str(tmp_path / "runs"), "PYTHONPATH": str(ROOT), "TERM": "dumb"}
            os.chdir(tmp_path)
            os.execvp("make", ["make", "train", f"PRESET={recipe}"])
        started.append((pid, terminal))
        return pid, terminal

    yield start
    for _, terminal in started:
        os.close(terminal)


def ended(pid: int, terminal: int) -> tuple[int, str]:
    text = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text.decode(errors="replace")


def test_a_ctrl_c_that_saved_the_run_is_no_error(tmp_path, make):
    pid, terminal = make("cartpole total_steps=10_000_000")
    while lines_of(tmp_path) < 3:
        time.sleep(0.01)
    os.write(terminal, b"\x03")
    _, text = ended(pid, terminal)
    assert "go on with: wavedash resume" in text
    assert "make: ***" not in text and "Error" not in text, text
    assert list(the_run(tmp_path).glob("checkpoints/step-*"))


def test_a_failure_is_still_an_error(tmp_path, make):
    code, text = ended(*make("cartpole total_steps=none"))
    assert code == 2 and "make: *** " in text
