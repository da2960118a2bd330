"""Changes to a run in two processes: the first reads them, both take them over before the same iteration, and the run is
resumed exactly from the checkpoint that was saved with the change."""
from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.runs.asking_ranks import AT
from tests.runs.test_live import equal, events
from tests.test_several_processes import run_in_two
from wavedash.config_file import load_config
from wavedash.runs.folder import RunFolder

pytestmark = pytest.mark.slow


def test_both_processes_change_at_once_and_resume_exactly(tmp_path: Path) -> None:
    said = run_in_two(tmp_path, "-m", "tests.runs.asking_ranks")
    has = [json.loads(row) for row in re.findall(r'\["has".*?\]\]', said)]  # two processes may write into one line
    before, after = ([7, [{"touch": 1.0, "velocity_player_to_ball": weight}] * 2] for weight in (0.1, 3.0))
    before[0], after[0] = load_config("rocket-1v1").ppo.learning_rate, 1e-2
    assert sorted(has) == sorted(["has", rank, AT + later, *values] for rank in (0, 1)
                                 for later, values in enumerate((before, after)))
    (whole,) = tmp_path.glob("runs/*/*")
    assert [(row["key"], "refused" in row) for row in events(whole)] == [
        ("ppo.learning_rate", False), ("env.rocket.rewards.velocity_player_to_ball", False), ("ppo.clip", True),
        ("pause", False), ("milestone", False), ("milestone", True), ("continue", False),
        ("save", False), ("env.rocket.rewards.touch", True)]

    (milestone,), _ = RunFolder(whole).milestones.listed()
    assert milestone.name == f"{events(whole)[0]['step']}-both"
    for kept in (milestone.checkpoint, RunFolder(whole).newest()):
        members = kept.load([])[1]["listeners"]["league"]["members"]
        assert [member["step"] for member in members if member["milestone"]] == [milestone.checkpoint.step]
    assert milestone.checkpoint.load([])[1]["ranks"] == 2

    copy = Path(shutil.copytree(whole, tmp_path / "killed"))
    *_, last = sorted((copy / "checkpoints").iterdir())
    for path in (last, copy / "final", copy / "best"):
        shutil.rmtree(path, ignore_errors=True)
    (saved,) = (copy / "checkpoints").iterdir()
    assert saved.name == f"step-{events(whole)[0]['step']:012d}.2", "the change has saved the run, and the milestone once more"
    run_in_two(tmp_path, "-m", "wavedash", "resume", str(copy))
    assert equal(copy, whole, marks=True)
