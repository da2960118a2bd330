"""How many CPU threads torch gets for what."""
from __future__ import annotations

import os

from wavedash.config import RunConfig
from wavedash.ppo.ranks import ALONE, Ranks

SMALL_MATRIX = 2**26
"""Multiplications of one layer below which a second CPU thread costs more than it brings."""


def threads_for(samples: int, config: RunConfig, ranks: Ranks = ALONE) -> int:
    """For networks that see so many samples at once: few while collecting, when workers need the cores too, and a minibatch
    of them while learning."""
    if config.threads:
        return config.threads
    widest = max([*config.policy.hidden, *(config.policy.critic_hidden or []), 1])
    large = samples * widest * widest >= SMALL_MATRIX
    return max(1, (os.cpu_count() or 1) // ranks.local_size) if large else 1
