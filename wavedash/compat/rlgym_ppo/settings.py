"""Turns the arguments of rlgym-ppo's Learner into our configuration with the same meaning."""
from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from inspect import Parameter
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from pydantic import ValidationError

from wavedash.compat.rlgym_ppo.script_name import factory_of
from wavedash.config import RunConfig
from wavedash.envs.row_spec import RowSpec
from wavedash.envs.script import script_being_imported
from wavedash.errors import UserError

log = logging.getLogger(__name__)

DEFAULT_FOLDER = "data/checkpoints/rlgym-ppo-run"

NOT_NEEDED = {
    "min_inference_size": "actions of one half of the environments are inferred while the other half steps",
    "shm_buffer_size": "shared memory is as large as the spaces need",
    "instance_launch_delay": "processes can start at the same time",
    "max_returns_per_stats_increment": "all returns count for the statistics, at no cost",
    "steps_per_obs_stats_increment": "all observations count for the statistics, at no cost",
}
"""Arguments that are accepted and have no effect, with the reason"""


def check(arguments: Mapping[str, Any], signature: Mapping[str, Parameter]) -> None:
    """Raises UserError for what cannot be done, and logs what is ignored."""
    if (script := script_being_imported()) is not None:
        raise UserError(f"{script} makes a Learner as soon as it is imported, so its environments cannot be built without "
                        "training anew: put what it does when it is started under `if __name__ == '__main__':`")
    if not callable(arguments["env_create_function"]):
        raise UserError("env_create_function must be a function that returns an environment")
    if arguments["n_proc"] < 1:
        raise UserError(f"n_proc={arguments['n_proc']}: at least one process is needed")
    ignored = [f"{name} ({why})" for name, why in NOT_NEEDED.items() if arguments[name] != signature[name].default]
    if ignored:
        log.warning("these arguments are not needed and ignored: %s", "; ".join(ignored))


def run_config(arguments: Mapping[str, Any], spec: RowSpec, agents: float | None = None) -> RunConfig:
    """Returns the configuration. `spec` is that of the environment which the arguments build. `agents` is how many play in it
    on average, where that is fewer than it has rows: empty seats are not counted as timesteps."""
    given = arguments
    batch, minibatch = given["ppo_batch_size"], given["ppo_minibatch_size"] or given["ppo_batch_size"]
    if batch % minibatch:
        raise UserError(f"ppo_batch_size={batch} must be a multiple of ppo_minibatch_size={minibatch}: a batch is split "
                        "into minibatches of equal size")
    timesteps = given["ts_per_iteration"]
    steps = math.ceil(timesteps / (given["n_proc"] * (agents or spec.rows_per_env)))
    # This counts empty seats and what was rounded up too. A minibatch holds its share of them, so the number of minibatches is
    # right.
    stored = steps * given["n_proc"] * spec.rows_per_env
    action_size = int(np.prod(spec.action_space.shape or ())) if isinstance(spec.action_space, spaces.Box) else 1
    values = {
        "name": Path(given["checkpoints_save_folder"] or DEFAULT_FOLDER).name,
        "seed": given["random_seed"],
        "total_steps": int(given["timestep_limit"]),
        "threads": given.get("threads", 0),
        "device": "cuda" if given["device"] == "gpu" else given["device"],
        "env": {
            **factory_of(given["env_create_function"]),
            "count": given["n_proc"], "workers": given["n_proc"], "groups": min(2, given["n_proc"]), "worker_timeout": 60.0,
        },
        "policy": {
            "hidden": list(given["policy_layer_sizes"]), "critic_hidden": list(given["critic_layer_sizes"]),
            "activation": "relu", "distribution": "confined", "std_range": tuple(given["continuous_var_range"]),
        },
        "ppo": {
            "rollout_steps": steps,
            "buffer_rollouts": max(1, int(given["exp_buffer_size"] // timesteps)),
            "epochs": given["ppo_epochs"],
            "minibatch_size": math.ceil(stored * batch / timesteps),
            "accumulate": batch // minibatch,
            "learning_rate": given["policy_lr"], "critic_learning_rate": given["critic_lr"], "adam_eps": 1e-8,
            "gamma": given["gae_gamma"], "gae_lambda": given["gae_lambda"],
            "clip_range": given["ppo_clip_range"],
            # rlgym-ppo takes the mean of the entropy over the dimensions of a continuous action, we take the sum.
            "entropy_coef": given["ppo_ent_coef"] / action_size,
            "value_coef": 1.0, "normalize_advantage": "off", "max_grad_norm": 0.5,
            "normalize_obs": given["standardize_obs"], "obs_clip": 5.0,
            "normalize_reward": given["standardize_returns"], "reward_clip": 10.0,
        },
        "checkpoint": {"every": given["save_every_ts"], "keep": given["n_checkpoints_to_keep"]},
        "report": {"console": "off"},
    }
    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}, got {e['input']!r}" for e in error.errors())
        raise UserError(f"an argument of Learner cannot be used. In terms of Wavedash's configuration: {wrong}") from None
