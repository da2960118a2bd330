"""The benchmark of lanes: its lanes and ramps are the academy's, and a table compares it with the plain task."""
from __future__ import annotations

import pytest

from wavedash.bench import lanes
from wavedash.config_file import load_config
from wavedash.curriculum.plan import Plan
from wavedash.curriculum.state import PhaseState

QUICK = ["policy.hidden=[8]", "ppo.rollout_steps=8", "ppo.minibatch_size=64", "env.count=40"]


def test_lanes_measures_and_ramps_are_those_of_the_academy() -> None:
    academy = lanes.Academy.read()
    phases = load_config("rocket-academy").phases
    here = next(phase for phase in phases if phase.name == academy.phase)
    assert "env.rocket.lanes.mechanics" in here.set and list(academy.lanes) == ["turtle", "mechanics"]
    config = load_config("rocket-1v1", [*academy.overrides, *academy.phases])
    stage = Plan(load_config("rocket-academy")).stages()[phases.index(here)]
    assert config.env.rocket.lanes == stage.env.rocket.lanes and config.env.rocket.measures == stage.env.rocket.measures
    assert academy.ramps["env.rocket.zero_sum"] == here.set["env.rocket.zero_sum"]
    earlier = next(phase for phase in phases if phase.name == "SilverSkills").set["env.rocket.rewards"]
    assert academy.ramps["env.rocket.rewards.face_ball"] == earlier["face_ball"], "it goes on"
    assert set(Plan(config).ramps(PhaseState())) == {tuple(key.split(".")) for key in academy.ramps}


def test_it_prints_what_lanes_cost(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "SETTLE", 2)
    lanes.main(["--device", "cpu", "--rounds", "2", "--measures", *QUICK])
    printed = capsys.readouterr().out
    assert "40 arenas x 8 steps, lanes of rocket-academy in GoldSkills, CPU" in printed
    rows = {line.split("│")[1].strip(): [cell.strip() for cell in line.split("│")[2:-1]]
            for line in printed.splitlines() if line.count("│") > 2}
    assert list(rows) == [lanes.PLAIN, lanes.LANES, lanes.RAMPS, lanes.MEASURES, lanes.AS_MANY]
    assert all(rows[name][2].endswith("%") and "% - " in rows[name][3] for name in rows if name != lanes.PLAIN)
