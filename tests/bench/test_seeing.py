"""The benchmark of seeing: two runs side by side, a student of one of them, and all on the same course, within seconds."""
from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from wavedash.bench import seeing
from wavedash.errors import UserError
from wavedash.runs.find import resolve_policy
from wavedash.walk.evaluate.walking import evaluate_walking

SMALL = ["--robots", "16", "--camera-robots", "16", "--terrain", "stones", "--levels", "0,9", "--episodes", "2",
         "device=cpu", "report.tensorboard=false", "policy.hidden=[8]", "policy.critic_hidden=[8]", "policy.memory.size=8"]


def learned(name: str) -> int:
    return int(resolve_policy(Path("runs") / name).step)


@pytest.mark.slow
def test_teachers_learn_in_two_goes_a_student_from_the_newest_and_all_walk(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(seeing, "evaluate_walking", partial(evaluate_walking, seconds=4.0))  # to fall, not to arrive
    seeing.main(["--teachers", "0.01", "--camera", "0", "--no-table", *SMALL])
    first = learned(seeing.VISION)
    assert first >= 16 * seeing.STEPS and "stones" in capsys.readouterr().out
    seeing.main(["--teachers", "0.01", "--camera", "0.01", *SMALL])
    assert learned(seeing.VISION) > first and len(list(Path("runs", seeing.VISION).iterdir())) == 1, "the same run goes on"
    (teacher,) = Path("runs", seeing.CAMERA).glob("*/teacher/state.json")
    assert json.loads(teacher.read_text())["steps"] == learned(seeing.VISION)
    printed = capsys.readouterr().out
    assert "vision" in printed and "noisy map" in printed and "blind" in printed and "camera" in printed
    results = json.loads(Path("seeing", "seeing.json").read_text())
    monkeypatch.setenv("WAVEDASH_RUNS", "seeing")
    seeing.main(["--teachers", "0", "--camera", "0", "--out", "elsewhere", *SMALL])
    again = json.loads(Path("elsewhere", "seeing.json").read_text())
    assert {name: x["tiles"] for name, x in again.items()} == {name: x["tiles"] for name, x in results.items()}
    assert [(name, x["noisy"]) for name, x in results.items()] == [
        ("vision", False), ("noisy map", True), ("blind", False), ("camera", False)]


def test_a_run_that_fails_says_why(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"seeing-vision ended too soon(.|\n)*no preset has this name"):
        seeing.train({seeing.VISION: "walk-ruff"}, 0.01, [], tmp_path)
