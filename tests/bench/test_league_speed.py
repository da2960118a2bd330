"""The benchmark of opponents: two runs that differ in their opponents alone take turns, and a table compares them."""
from __future__ import annotations

import torch

from wavedash.bench import league
from wavedash.config_file import load_config

QUICK = ["policy.hidden=[8]", "ppo.rollout_steps=4", "ppo.minibatch_size=64"]


def test_it_prints_what_opponents_cost(capsys):
    league.main(["--device", "cpu", "--arenas", "16", "--slots", "2", "--share", "0.5", "--rounds", "2", *QUICK])
    printed = capsys.readouterr().out
    assert "16 arenas x 4 steps, 2 opponents in 50.0% of the arenas, CPU" in printed
    rows = {line.split("│")[1].strip(): [cell.strip() for cell in line.split("│")[2:-1]]
            for line in printed.splitlines() if line.count("│") > 2}
    assert list(rows) == ["without opponents", "with opponents", "speed kept"]
    assert all(cell.endswith(" %") for cell in rows["speed kept"])


def test_the_opponents_are_different_policies_in_the_precision_of_the_learner():
    config = load_config("rocket-1v1", ["device=cpu", "env.count=8", "precision=bf16", *QUICK])
    with league.learner_of(config, 0.5, 2) as learner:
        first, second = (task.line_up.players[0].actors for task in learner.env.tasks)
        assert first is second and first.precision == learner.policy.precision == torch.bfloat16
        weight = first.body.layers[0].weight
        assert weight.dtype == torch.bfloat16 and not torch.equal(weight[0], weight[1])
        assert league.share_of(learner) == 0.5
    with league.learner_of(config, None, 2) as learner:
        assert all(task.line_up is None for task in learner.env.tasks)


def test_the_ratio_is_what_is_left_of_the_speed():
    turn = {league.WITHOUT: {"iteration": 80.0, "learned steps/s": 10.0},
            league.WITH: {"iteration": 100.0, "learned steps/s": 7.0}}
    assert league._ratio(turn, "iteration") == 0.8
    assert league._ratio(turn, "learned steps/s") == 0.7
