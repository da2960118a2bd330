"""Runs the commands and the Python of a page one after the other in one process.

A process for each would import torch anew, which takes longer than most of them. That the program `wavedash` starts at all is
what tests/test_cli.py and tests/test_training.py are about.
"""
from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from tests import prepared

ROOT = Path(__file__).parents[1]
END = "--- end of a job"

PROGRAM = f"""
import json, sys
from pathlib import Path
from wavedash.cli.app import app

for job in json.load(sys.stdin):
    print(job, file=sys.stderr)
    if isinstance(job, dict):
        for name, text in job.items():
            Path(name).write_text(text, encoding="utf-8")
    elif isinstance(job, str):
        exec(job, {{"__name__": "__main__"}})
    elif code := app(job, standalone_mode=False):
        sys.exit(code)
    print({END!r}, flush=True)
"""

Job = str | list[str] | dict[str, str]
"""Python to run, the words of a command after `wavedash`, or texts of files to write by name"""


def run_jobs(jobs: Sequence[Job], folder: Path) -> list[str]:
    """Returns what each job printed. Modules are found in `folder`, where the jobs run."""
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    done = prepared.run(["-c", PROGRAM], folder, environment, timeout=None, given=json.dumps(jobs))
    assert done.returncode == 0, done.stdout + done.stderr
    *printed, rest = done.stdout.split(f"{END}\n")
    assert (len(printed), rest) == (len(jobs), "")
    return printed
