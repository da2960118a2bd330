"""metrics.jsonl is complete, valid and continuous across kills, and a full disk does not end the run."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.reports import STEPS, play
from wavedash.report.metrics_file import MetricsFile, cut_after


def read(path: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_iteration_is_one_line_with_all_metrics(tmp_path: Path) -> None:
    play(MetricsFile(tmp_path / "m.jsonl"), range(1, 4), rollout__return=1.5, policy__kl=0.01)
    lines = read(tmp_path / "m.jsonl")
    assert [line["steps"] for line in lines] == [100, 200, 300]
    assert lines[1]["rollout/return"] == 1.5 and lines[1]["policy/kl"] == 0.01
    assert lines[1]["run/episodes"] == 6 and lines[1]["time/update"] == 0.6
    assert lines[1]["time/steps_per_second"] == pytest.approx(100.0)


def test_a_line_is_on_disk_before_the_next_iteration_begins(tmp_path: Path) -> None:
    play(MetricsFile(tmp_path / "m.jsonl"), range(1, 3), stop=False)
    assert len(read(tmp_path / "m.jsonl")) == 2


def test_nan_is_written_as_valid_json(tmp_path: Path) -> None:
    play(MetricsFile(tmp_path / "m.jsonl"), range(1, 2), loss__value=float("nan"), loss__policy=float("inf"))
    text = (tmp_path / "m.jsonl").read_text()
    line = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert line["loss/value"] is None and line["loss/policy"] is None


def test_a_resumed_run_reads_as_one_that_never_stopped(tmp_path: Path) -> None:
    straight, resumed = tmp_path / "straight.jsonl", tmp_path / "resumed.jsonl"
    play(MetricsFile(straight), range(1, 9))
    play(MetricsFile(resumed), range(1, 7), stop=False)  # killed after 6 iterations; its checkpoint was of iteration 4
    play(MetricsFile(resumed), range(5, 9))
    assert resumed.read_bytes() == straight.read_bytes()


def test_a_new_run_does_not_continue_what_was_there(tmp_path: Path) -> None:
    play(MetricsFile(tmp_path / "m.jsonl"), range(1, 4))
    play(MetricsFile(tmp_path / "m.jsonl"), range(1, 2))
    assert len(read(tmp_path / "m.jsonl")) == 1


def test_wherever_a_kill_tears_the_file_the_whole_lines_before_it_stay(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    play(MetricsFile(path), range(1, 4))
    whole = path.read_bytes()
    line_ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        cut_after(path, 3 * STEPS)
        assert path.read_bytes() == whole[: max([0, *(end for end in line_ends if end <= cut)])]


def test_a_damaged_line_in_the_middle_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    play(MetricsFile(path), range(1, 4))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\x00\x00\n" + lines[2])
    cut_after(path, 3 * STEPS)
    assert path.read_bytes().endswith(lines[2])


FULL_DISK = """
import logging, resource, sys
from pathlib import Path
from tests.report.reports import make_report, stand_in_learner
from wavedash.report.{module} import {listener}

logging.basicConfig(format="%(message)s", stream=sys.stdout)
listener = {listener}(Path(sys.argv[1]))
listener.on_start(stand_in_learner())
listener.on_iteration(None, make_report(1))
file = listener._file
room = file.path.stat().st_size + 50  # bytes: the next record fits only in part
resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
for iteration in (2, 3, 4):
    listener.on_iteration(None, make_report(iteration))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
for iteration in (5, 6):
    listener.on_iteration(None, make_report(iteration))
print("dropped", file.dropped)
"""


def run_on_full_disk(module: str, listener: str, path: Path) -> list[str]:
    """The operating system really refuses the bytes, as on a full disk: first in part, then altogether."""
    pytest.importorskip("resource")
    script = FULL_DISK.format(module=module, listener=listener)
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False,
                          cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_full_disk_costs_points_but_not_the_run_nor_the_file(tmp_path: Path) -> None:
    output = run_on_full_disk("metrics_file", "MetricsFile", tmp_path / "m.jsonl")
    assert [line["steps"] for line in read(tmp_path / "m.jsonl")] == [100, 500, 600]
    assert output[-1] == "dropped 3"
    warnings = output[:-1]
    assert len(warnings) == 2 and "cannot be written" in warnings[0] and "can be written again; 3 points" in warnings[1]
