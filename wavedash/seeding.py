"""One seed drives every random stream: each stream has a name and gets a seed of its own."""
from __future__ import annotations

import zlib

import numpy as np


def stream_seed(seed: int, stream: str, index: int = 0) -> int:
    """Returns a 63-bit seed for number `index` of the stream `stream`, of a run with seed `seed`; streams are independent."""
    entropy = np.random.SeedSequence([seed, zlib.crc32(stream.encode()), index])
    return int(entropy.generate_state(1, np.uint64)[0] >> np.uint64(1))
