"""Phases on a GPU: a move captures no CUDA graph anew, and the graphs that are replayed read the new values."""
from __future__ import annotations

from pathlib import Path

import pytest
import torch
import yaml

from tests.runs.test_live import trained
from tests.runs.test_live_cuda import SETTINGS, Watch

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]

ITERATION = 64 * 2 * 16
PHASES = [
    {"name": "Faces", "set": {"env.rocket.rewards": {"face_ball": 1.0}, "env.rocket.endings": {"time_out": {"seconds": 100}},
                              "ppo.entropy_coef": {"from": 0.02, "to": 0.01, "over": 4 * ITERATION}},
     "until": {"steps": 5 * ITERATION}},
    {"name": "Drives", "set": {"env.rocket.rewards": {"velocity_player_to_ball": 1.0},
                               "env.rocket.endings": {"time_out": {"seconds": 0.1}}, "env.rocket.starts": {"random": 1},
                               "env.rocket.lanes": {"turtle": {"share": 0.25, "starts": {"turtle": 1}}}}},
]


def test_a_move_captures_nothing_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "runs"))
    file = tmp_path / "phases.yaml"
    file.write_text(yaml.safe_dump({"base": SETTINGS[0], "phases": PHASES}))
    watch = Watch()
    trained(tmp_path, (str(file), *SETTINGS[1:]), watch)
    at = 5
    assert len(watch.graphs[at - 1]) >= 2, "collection and update are graphs by now"
    assert all(graphs == watch.graphs[at - 1] for graphs in watch.graphs[at:]), "and stay the same ones"
    names = ("face_ball", "velocity_player_to_ball")
    faces, drives = ([abs(row[f"env/reward/{name}"]) for row in watch.rows] for name in names)
    assert all(x > 0 for x in faces[:at]) and not any(faces[at:])
    assert not any(drives[:at]) and all(x > 0 for x in drives[at:])
    assert watch.rows[at]["rollout/episodes"] > 10 * max(1.0, watch.rows[at - 1].get("rollout/episodes", 0.0)), "they end soon"
    assert "lane/turtle/reward" not in watch.rows[at - 1] and "lane/turtle/reward" in watch.rows[-1]
