"""Small learners with rlgym-ppo's constructor."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.compat.gym_envs import two_players
from wavedash.compat.rlgym_ppo import Learner

SMALL = {
    "n_proc": 1, "ts_per_iteration": 40, "exp_buffer_size": 40, "ppo_batch_size": 40, "ppo_epochs": 2, "timestep_limit": 120,
    "policy_layer_sizes": (16, 8), "critic_layer_sizes": (12,), "device": "cpu", "save_every_ts": 40,
}


@contextmanager
def small_learner(folder: Path, build: Any = two_players, **changes: Any) -> Iterator[Learner]:
    learner = Learner(build, **{**SMALL, "checkpoints_save_folder": str(folder / "bot"), **changes})
    try:
        yield learner
    finally:
        learner.cleanup()
