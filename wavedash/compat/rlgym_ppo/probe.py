"""What the script's environments look like, and how many agents play in one on average."""
from __future__ import annotations

import numpy as np

from wavedash.compat.rlgym_ppo.maker import EnvMaker
from wavedash.envs.rlgym import TRIES
from wavedash.envs.row_spec import RowSpec


def probe(make: EnvMaker) -> tuple[RowSpec, float]:
    """Begins a few episodes where there is more than one row, because teams may change their size."""
    world = make()
    try:
        spec = RowSpec.of(world)
        if spec.rows_per_world == 1:
            return spec, 1.0
        counts = []
        for seed in range(TRIES):
            world.reset(seed)
            counts.append(np.broadcast_to(world.active, spec.rows_per_world).sum())
        return spec, float(np.mean(counts))
    finally:
        world.close()
