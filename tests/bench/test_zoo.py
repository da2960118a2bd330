"""`bench zoo` trains in processes of its own, keeps every episode, and runs nothing twice."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from wavedash.bench import zoo
from wavedash.config_file import load_config

pytestmark = pytest.mark.slow


def test_runs_are_kept_and_not_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "results.jsonl"
    command = ["--task", "mountaincar-continuous", "--side", "wavedash", "--steps", "64", "--episodes", "2", "--jobs", "2",
               "--results", str(file)]
    zoo.main([*command, "--seeds", "1"])
    kept = file.read_text()
    run = json.loads(kept)
    assert len(run["returns"]) == 2 and (run["side"], run["seed"], run["steps"]) == ("wavedash", 1, 64)
    other = json.dumps({**run, "side": "sb3", "returns": [x - 50.0 for x in run["returns"]]}) + "\n"
    file.write_text(kept + other)
    capsys.readouterr()
    zoo.main([*command, "--side", "sb3", "--seeds", "1"])
    mean = sum(run["returns"]) / 2
    table = capsys.readouterr().out
    assert f"{mean:.1f}" in table and f"{mean - 50.0:.1f}" in table
    assert file.read_text() == kept + other


@pytest.mark.parametrize("task", zoo.ZOO)
def test_both_sides_have_the_same_settings(task: str) -> None:
    theirs, config = zoo.ZOO[task], load_config(task)
    ppo = config.ppo
    defaults = {"learning_rate": 3e-4, "batch_size": 64, "clip_range": 0.2, "vf_coef": 0.5, "max_grad_norm": 0.5}
    names = {"n_steps": ppo.rollout_steps, "batch_size": ppo.minibatch_size, "gamma": ppo.gamma, "gae_lambda": ppo.gae_lambda,
             "learning_rate": ppo.learning_rate, "ent_coef": ppo.entropy_coef, "clip_range": ppo.clip_range,
             "n_epochs": ppo.epochs, "max_grad_norm": ppo.max_grad_norm, "vf_coef": ppo.value_coef}
    assert names == {name: {**defaults, **theirs}[name] for name in names}
    assert (config.env.id, config.env.count, config.total_steps) == (theirs["env"], theirs["environments"], theirs["steps"])
    assert ppo.normalize_obs == ppo.normalize_reward == theirs["normalize"] and ppo.normalize_advantage == "minibatch"
    assert (config.policy.std == "gsde") == theirs.get("use_sde", False)
