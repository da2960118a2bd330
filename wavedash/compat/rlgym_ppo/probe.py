"""Finds the spaces of the script's environments, and how many agents play in one on average."""
from __future__ import annotations

import numpy as np

from wavedash.compat.rlgym_ppo.maker import EnvMaker
from wavedash.envs.rlgym.env import TRIES
from wavedash.envs.row_spec import RowSpec

EPISODES = 200
"""The number of episodes begun where teams change their size; the mean is then known to a few percent."""


def probe(make: EnvMaker) -> tuple[RowSpec, float]:
    """Returns the spaces and the mean number of agents. It begins a few episodes where there is more than one row, because
    teams may change their size."""
    env = make()
    try:
        spec = RowSpec.of(env)
        if spec.rows_per_env == 1:
            return spec, 1.0
        counts: list[int] = []
        for seed in range(EPISODES):
            env.reset(seed)
            counts.append(int(np.broadcast_to(env.active, spec.rows_per_env).sum()))
            if seed == TRIES and len(set(counts)) == 1:
                break
        return spec, sum(counts) / len(counts)
    finally:
        env.close()
