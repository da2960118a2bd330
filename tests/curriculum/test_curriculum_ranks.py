"""Phases of a run in two processes: both move before the same iteration, and go on together where sizes change."""
from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from tests.runs.test_live import equal, events
from tests.test_several_processes import run_in_two

pytestmark = pytest.mark.slow

SETTINGS = ("total_steps=1600", "env.count=4", "env.groups=1", "ppo.rollout_steps=8", "ppo.epochs=2", "ppo.minibatch_size=16",
            "policy.hidden=[8]", "device=cpu", "threads=1", "report.console=off", "report.tensorboard=false",
            "checkpoint.every=1_000_000", "checkpoint.keep=100", "rating=null",
            "env.rocket.observation={advanced_obs_plus: {team_size: 2}}")
PHASES = [
    {"name": "Alone", "set": {"env.rocket.rewards": {"touch": 1, "face_ball": {"from": 1, "to": 0, "over": 1000}}},
     "until": {"steps": 300}},
    {"name": "Both", "set": {"env.rocket.rewards": {"goal": 1}, "env.rocket.sizes": {"1v1": 0.5, "2v2": 0.5}}},
]


def test_both_processes_move_together_and_resume_exactly(tmp_path: Path) -> None:
    (tmp_path / "phases.yaml").write_text(yaml.safe_dump({"base": "rocket-1v1", "phases": PHASES}))
    run_in_two(tmp_path, "-m", "wavedash", "train", "phases.yaml", *SETTINGS)
    (whole,) = tmp_path.glob("runs/*/*")
    rows = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    # Two processes with 4 arenas of 2 cars, and then 2 of 2 and 2 of 4 cars; 8 steps; rewards are scaled in a first rollout.
    assert [row["rollout/steps"] for row in rows] == [128, 128, 192, 192, 192, 192, 192, 192, 192][:len(rows)]
    assert [row["phase/number"] for row in rows] == [1, 1, *[2] * (len(rows) - 2)]
    assert [row["key"] for row in events(whole)] == ["phase"]

    copy = Path(shutil.copytree(whole, tmp_path / "killed"))
    *_, last = sorted((copy / "checkpoints").iterdir())
    for path in (last, copy / "final", copy / "best"):
        shutil.rmtree(path, ignore_errors=True)
    assert len(list((copy / "checkpoints").iterdir())) == 1, "the move has saved the run"
    run_in_two(tmp_path, "-m", "wavedash", "resume", str(copy))
    assert equal(copy, whole, marks=True)
