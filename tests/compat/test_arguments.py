"""Every argument of rlgym-ppo's Learner works, is ignored with the reason, or is refused with the reason."""
from __future__ import annotations

import inspect
import logging
import re
from pathlib import Path

import pytest
from gymnasium import spaces

from tests.compat.gym_envs import Match, two_players
from tests.compat.learners import SMALL
from wavedash.compat.rlgym_ppo import Learner
from wavedash.compat.rlgym_ppo.settings import NOT_NEEDED, run_config
from wavedash.envs.row_spec import RowSpec
from wavedash.errors import UserError

THEIRS = {
    "metrics_logger": None, "n_proc": 8, "min_inference_size": 80, "render": False, "render_delay": 0,
    "timestep_limit": 5_000_000_000, "exp_buffer_size": 100000, "ts_per_iteration": 50000, "standardize_returns": True,
    "standardize_obs": True, "max_returns_per_stats_increment": 150, "steps_per_obs_stats_increment": 5,
    "policy_layer_sizes": (256, 256, 256), "critic_layer_sizes": (256, 256, 256), "continuous_var_range": (0.1, 1.0),
    "ppo_epochs": 10, "ppo_batch_size": 50000, "ppo_minibatch_size": None, "ppo_ent_coef": 0.005, "ppo_clip_range": 0.2,
    "gae_lambda": 0.95, "gae_gamma": 0.99, "policy_lr": 3e-4, "critic_lr": 3e-4, "log_to_wandb": False, "load_wandb": True,
    "wandb_run": None, "wandb_project_name": None, "wandb_group_name": None, "wandb_run_name": None,
    "checkpoints_save_folder": None, "add_unix_timestamp": True, "checkpoint_load_folder": "latest", "save_every_ts": 1_000_000,
    "instance_launch_delay": None, "random_seed": 123, "n_checkpoints_to_keep": 5, "shm_buffer_size": 8192, "device": "auto",
}
"""The arguments and defaults of rlgym-ppo 1.3.13."""
DUEL = RowSpec(spaces.Box(-1, 1, (92,)), spaces.Discrete(90), rows_per_env=2)


def configured(spec=DUEL, **changes):
    return run_config({**THEIRS, "env_create_function": two_players, **changes}, spec)


def test_the_constructor_has_the_names_order_and_defaults_of_rlgym_ppo():
    first, *rest, ours = inspect.signature(Learner).parameters.values()
    assert first.name == "env_create_function" and first.default is inspect.Parameter.empty
    assert [(p.name, p.default) for p in rest] == list(THEIRS.items())
    assert (ours.name, ours.default, ours.kind) == ("threads", 0, inspect.Parameter.KEYWORD_ONLY)


def test_the_defaults_of_rlgym_ppo_mean_the_same_here():
    config = configured()
    ppo, policy, env = config.ppo, config.policy, config.env
    assert (env.count, env.workers, env.groups) == (8, 8, 2)
    assert ppo.rollout_steps * env.count * 2 == 50_000 and ppo.buffer_rollouts == 2
    assert (ppo.epochs, ppo.minibatch_size, ppo.accumulate) == (10, 50_000, 1)
    assert (policy.hidden, policy.critic_hidden, policy.activation) == ([256] * 3, [256] * 3, "relu")
    assert (ppo.learning_rate, ppo.critic_learning_rate, ppo.gamma, ppo.gae_lambda) == (3e-4, 3e-4, 0.99, 0.95)
    assert (ppo.clip_range, ppo.entropy_coef, ppo.max_grad_norm, ppo.normalize_advantage) == (0.2, 0.005, 0.5, "off")
    assert ppo.normalize_obs and ppo.normalize_reward
    assert (config.total_steps, config.seed, config.name) == (5_000_000_000, 123, "rlgym-ppo-run")
    assert (config.checkpoint.every, config.checkpoint.keep) == (1_000_000, 5)
    assert config.env.factory == "tests.compat.gym_envs:two_players"


@pytest.mark.parametrize(("changes", "option", "expected"), [
    ({"ts_per_iteration": 1001, "n_proc": 5}, "ppo.rollout_steps", 101),
    ({"ts_per_iteration": 50_000, "exp_buffer_size": 149_000}, "ppo.buffer_rollouts", 2),
    ({"exp_buffer_size": 10, "ts_per_iteration": 100}, "ppo.buffer_rollouts", 1),
    ({"ppo_batch_size": 900, "ppo_minibatch_size": 300}, "ppo.accumulate", 3),
    ({"policy_lr": 1e-4, "critic_lr": 2e-4}, "ppo.critic_learning_rate", 2e-4),
    ({"standardize_obs": False}, "ppo.normalize_obs", False),
    ({"standardize_returns": False}, "ppo.normalize_reward", False),
    ({"n_proc": 1}, "env.groups", 1),
    ({"continuous_var_range": (0.2, 0.4)}, "policy.std_range", (0.2, 0.4)),
    ({"policy_layer_sizes": (512, 64)}, "policy.hidden", [512, 64]),
    ({"device": "gpu"}, "device", "cuda"),
    ({"device": "cuda:1"}, "device", "cuda:1"),
    ({"random_seed": 7}, "seed", 7),
    ({"n_checkpoints_to_keep": 3}, "checkpoint.keep", 3),
    ({"checkpoints_save_folder": "data/mine"}, "name", "mine"),
])
def test_an_argument_reaches_its_option(changes, option, expected):
    config = configured(**changes)
    for name in option.split("."):
        config = getattr(config, name)
    assert config == expected


def test_the_entropy_of_a_continuous_action_is_a_mean_over_its_dimensions_in_rlgym_ppo():
    eight = RowSpec(spaces.Box(-1, 1, (92,)), spaces.Box(-1, 1, (8,)), 2)
    assert configured(eight, ppo_ent_coef=0.08).ppo.entropy_coef == pytest.approx(0.01)


@pytest.mark.parametrize(("changes", "message"), [
    ({"n_proc": 0}, "at least one process"),
    ({"ppo_batch_size": 100, "ppo_minibatch_size": 30}, "must be a multiple of ppo_minibatch_size=30"),
    ({"env_create_function": None}, "must be a function"),
    ({"gae_gamma": 1.5}, "ppo.gamma: .*less than or equal to 1, got 1.5"),
    ({"policy_lr": 0.0}, "ppo.learning_rate: .*greater than 0"),
    ({"checkpoint_load_folder": "nowhere"}, "nowhere holds no checkpoint"),
    ({"log_to_wandb": True}, "needs the wandb package"),
    ({"device": "cuda:77"}, "device cuda:77 cannot be used"),
])
def test_what_cannot_be_done_is_refused_with_the_reason(tmp_path, changes, message):
    with pytest.raises(UserError, match=message):
        Learner(**{"env_create_function": two_players, **SMALL, "checkpoints_save_folder": str(tmp_path / "bot"), **changes})
    assert list(tmp_path.iterdir()) == []


def test_arguments_that_are_not_needed_are_named_in_one_line(tmp_path, caplog):
    given = dict.fromkeys(NOT_NEEDED, 3)
    with caplog.at_level(logging.WARNING), pytest.raises(UserError, match="holds no checkpoint"):
        Learner(two_players, **SMALL, **given, checkpoints_save_folder=str(tmp_path), checkpoint_load_folder="nowhere")
    assert [all(name in record.message for name in NOT_NEEDED) for record in caplog.records] == [True]


def test_lambdas_and_closures_reach_the_workers(tmp_path):
    agents = 3
    learner = Learner(lambda: Match(agents), **SMALL, checkpoints_save_folder=str(tmp_path / "bot"))
    try:
        assert learner._env.num_rows == 3
    finally:
        learner.cleanup()


def test_the_page_lists_every_argument():
    page = (Path(__file__).parents[2] / "docs" / "rlgym.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`\w+`,? ?)+)\|", page, re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(["env_create_function", *THEIRS, "threads"])
