"""The memory of arenas on a device, by what it is for."""
from __future__ import annotations

import torch

from wavedash.config import EnvConfig
from wavedash.rocket.env import shard_sizes
from wavedash.rocket.kind import seats_of
from wavedash.rocket.shard import BEGINNINGS
from wavedash.rocket.state import CONTROLS, WORD, GameState

STATES = 3
"""The state of an arena, the one before the step, and the next beginning of the arena"""


def arena_memory(config: EnvConfig, device: torch.device) -> dict[str, int]:
    """Bytes of `config.count` arenas: `simulator` (states, and work memory of the kernels), `beginnings` (the store of states
    that episodes begin with) and `snapshot` (the copy of what the arenas depend on, from the beginning of the iteration)."""
    rocket = config.rocket
    assert rocket is not None
    seats, arenas, shards = seats_of(rocket), config.count, shard_sizes(config, device)
    record, controls = GameState.record_bytes(seats), seats * len(CONTROLS) * WORD
    simulator, kept = STATES * record + controls, record + controls
    shared = 0
    if rocket.simulator == "warp":
        from wavedash.rocket.sim.size import kept_bytes, shared_bytes, work_bytes

        simulator += kept_bytes(seats) + work_bytes(seats)
        kept += kept_bytes(seats)
        shared = sum(shared_bytes(shard, device.type == "cuda") for shard in shards)
    beginnings = record * sum(max(2, -(-BEGINNINGS // shard)) * shard for shard in shards)
    return {"simulator": arenas * simulator + shared, "beginnings": beginnings, "snapshot": arenas * kept + beginnings}
