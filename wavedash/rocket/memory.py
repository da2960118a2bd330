"""The memory of arenas on a device, by what it is for."""
from __future__ import annotations

import torch

from wavedash.config import EnvConfig
from wavedash.rocket.shard import depth
from wavedash.rocket.state import CONTROLS, WORD, GameState
from wavedash.rocket.team_sizes import shard_plans

STATES = 3
"""The state of an arena, the one before the step, and the next beginning of the arena"""


def arena_memory(config: EnvConfig, device: torch.device) -> dict[str, int]:
    """Bytes of `config.count` arenas: `simulator` (states, and work memory of the kernels), `beginnings` (the store of states
    that episodes begin with) and `snapshot` (the copy of what the arenas depend on, from the beginning of the iteration)."""
    rocket = config.rocket
    assert rocket is not None
    total = dict.fromkeys(("simulator", "beginnings", "snapshot"), 0)
    for plan in shard_plans(config, device):
        seats, arenas = plan.size.blue + plan.size.orange, plan.arenas
        record, controls = GameState.record_bytes(seats), seats * len(CONTROLS) * WORD
        simulator, kept, shared = STATES * record + controls, record + controls, 0
        if rocket.simulator == "warp":
            from wavedash.rocket.sim.size import kept_bytes, shared_bytes, work_bytes

            simulator += kept_bytes(seats) + work_bytes(seats)
            kept += kept_bytes(seats)
            shared = shared_bytes(arenas, device.type == "cuda")
        beginnings = record * depth(arenas, device) * arenas
        total["simulator"] += arenas * simulator + shared
        total["beginnings"] += beginnings
        total["snapshot"] += arenas * kept + beginnings
    return total
