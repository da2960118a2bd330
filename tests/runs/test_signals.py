"""Some cases of the campaign in signals.py: real runs are stopped in the middle of an iteration."""
from __future__ import annotations

import random
import sys
import time

import pytest

if sys.platform == "win32":
    pytest.skip("sends signals to process groups", allow_module_level=True)

from tests import prepared
from tests.runs.signals import COMMON, KINDS, Run, Undisturbed, ending, lines_of, the_run, undisturbed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    made: dict[str, Undisturbed] = {}

    def of(kind: str) -> Undisturbed:
        if kind not in made:
            made[kind] = undisturbed(kind, tmp_path_factory.mktemp("undisturbed"), imported=prepared.FORKS)
        return made[kind]

    return of


@pytest.mark.parametrize(("kind", "way", "code"), [
    ("rocket-1v1", "two Ctrl-C", 130),
    ("cartpole, 2 workers", "SIGTERM", 143),
    ("cartpole, 2 workers", "closed terminal", 129),
])
def test_a_run_that_is_stopped_is_saved_leaves_no_process_and_resumes_exactly(tmp_path, expected, kind, way, code):
    whole = expected(kind)
    run = Run(tmp_path, ["train", *KINDS[kind], *COMMON], terminal="terminal" in way, imported=prepared.FORKS)
    while lines_of(tmp_path) < 3 and run.process.poll() is None:
        time.sleep(0.002)
    time.sleep(0.5 * whole.iteration_seconds)
    run.send(way, random.Random(2))  # three SIGTERM
    assert run.end() == code, run.text
    assert run.left == []
    assert "Traceback" not in run.text and "could not save" not in run.text
    assert list(the_run(tmp_path).glob("checkpoints/step-*"))
    assert ending(tmp_path) is None, "it was stopped before its end"
    again = Run(tmp_path, ["resume", str(the_run(tmp_path))], terminal=False, imported=prepared.FORKS)
    assert again.end() == 0, again.text
    assert ending(tmp_path) == (whole.weights, whole.metrics)
