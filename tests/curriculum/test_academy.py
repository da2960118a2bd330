"""The preset rocket-academy, shortened: it goes through every phase and every team size, and a kill anywhere loses nothing."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.curriculum.test_curriculum import Killing, phases_of
from tests.runs.test_live import equal, in_folder, trained
from wavedash.config_file import load_config, smoke_overrides
from wavedash.curriculum.plan import Plan
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.preflight import check_run
from wavedash.training import resume

NAMES = ("BallTouching", "BronzeSkills", "SilverSkills", "GoldSkills", "Solo", "SoloAndDoubles", "Doubles", "DoublesAndTrios",
         "Trios")
PRESETS = ("rocket-academy", "rocket-academy-gpu")
SMALL = ("env.count=8", "ppo.rollout_steps=4", "ppo.epochs=1", "ppo.minibatch_size=64", "policy.hidden=[8]", "device=cpu",
         "threads=1", "report.console=off", "report.tensorboard=false", "checkpoint.every=1", "checkpoint.keep=100",
         "rating=null", "milestones.every=1_000_000", "total_steps=1500")


class Sees(Listener):
    """Keeps what the environments are in each iteration."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        env = learner.env
        self.seen.append({
            "cars": sorted({task.line_up.seats.shape[1] for task in env.tasks}),
            "against": sum(int((task.line_up.seats != 0).any(-1).sum()) for task in env.tasks),
            "lanes": sorted(name for name, lane in learner.config.env.rocket.lanes.items() if lane.share),
            "rate": learner.config.ppo.learning_rate,
        })


@pytest.fixture(scope="module")
def settings() -> tuple[str, ...]:
    """Opponents and lanes need some arenas of every size: here one slot, and shares that come to whole arenas."""
    config = load_config("rocket-academy", ["rating=null", "phases=[]"])
    phases = load_config("rocket-academy").model_dump()["phases"]
    for phase in phases:
        phase["until"] = None if phase["until"] is None else {"steps": 1}
        lanes = {key: value for key, value in phase["set"].items() if key.startswith("env.rocket.lanes.")}
        phase["set"] |= {key: value | {"share": 0.25} for key, value in lanes.items()}
        phase["set"] |= {"opponents": {"share": 0.25, "slots": 1}} if phase["set"].pop("opponents.share", None) else {}
    assert config.name == "rocket-academy"
    return "rocket-academy", *SMALL, f"phases={json.dumps(phases)}"


@pytest.mark.slow
def test_it_goes_through_every_phase_and_size_and_a_kill_loses_nothing(settings, tmp_path: Path, monkeypatch):
    sees, copies = Sees(), tmp_path / "copies"
    run = trained(in_folder(tmp_path / "whole", monkeypatch), settings, sees, Killing(copies))
    assert tuple(dict.fromkeys(phases_of(run))) == NAMES
    by_phase = dict(zip(phases_of(run), sees.seen, strict=True))
    assert [by_phase[name]["cars"] for name in NAMES] == [[2]] * 5 + [[2, 4], [4], [4, 6], [6]]
    assert [by_phase[name]["rate"] for name in NAMES] == [2e-4, 2e-4, 1e-4, *[0.8e-4] * 6]
    assert [by_phase[name]["lanes"] for name in NAMES] == [[], ["turtle"], ["turtle"], *[["mechanics", "turtle"]] * 6]
    assert not any(by_phase[name]["against"] for name in NAMES[:2]), "nobody but itself before it scores and recovers"
    assert sees.seen[-1]["against"] > 0, "its own past afterwards"

    iteration = {name: phases_of(run).index(name) + 1 for name in reversed(NAMES)}
    for name in ("BronzeSkills", "GoldSkills", "DoublesAndTrios"):  # in a ramp, with two lanes, with two team sizes
        copy = copies / f"{iteration[name] + 1:03d}"
        assert resume(str(copy)) == 0
        assert equal(copy, run, marks=True), name


@pytest.mark.parametrize("preset", PRESETS)
def test_the_presets_teach_what_they_say(preset: str):
    config = load_config(preset)
    assert tuple(phase.name for phase in config.phases) == NAMES
    stages = Plan(config).stages()
    assert [stage.ppo.learning_rate for stage in stages] == [2e-4, 2e-4, 1e-4, *[0.8e-4] * 6]
    assert [stage.opponents.share for stage in stages] == [0, 0, *[0.2] * 7]
    assert [{name: weight for name, weight in stage.env.rocket.sizes.items() if weight} for stage in stages] == [
        *[{"1v1": 1}] * 5, {"1v1": 0.5, "2v2": 0.5}, {"2v2": 1}, {"2v2": 0.5, "3v3": 0.5}, {"3v3": 1}]
    mechanics = stages[3].env.rocket.lanes["mechanics"]
    assert set(mechanics.starts) == {"wall", "air_dribble", "flip_reset", "jump_challenge", "dribble"}
    assert {name if isinstance(name, str) else next(iter(name)) for name in mechanics.measures} == set(mechanics.starts)
    rewards = [{name: value["weight"] if isinstance(value, dict) else value for name, value in stage.env.rocket.rewards.items()}
               for stage in stages]
    paid = [{name for name, weight in weights.items() if weight} for weights in rewards]
    assert "goal" not in paid[0] and {"goal", "concede", "basic_shot"} <= paid[1]
    assert {"jump_shot", "touch_toward_goal", "align_ball_goal"} <= paid[2] and "aerial_distance" in paid[3]
    assert all(phase.until is not None for phase in config.phases[:-1])


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_the_presets_pass_the_check_and_can_be_tried(preset: str):
    check_run(load_config(preset, ["device=cpu"]))
    smoke = load_config(preset, smoke_overrides(load_config(preset)))
    assert smoke.total_steps == 9_000
    assert [phase.until.steps for phase in smoke.phases[:-1]] == [1] * 8
