"""Episode returns and lengths, worked out for a whole rollout at once."""
from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

WINDOW_PER_ROLLOUT = 256
"""At most this many of the episodes that end in one rollout are remembered one by one (all are counted)."""


def running_sums(x: Tensor, decay: Tensor, carried: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """S_t = x_t + decay * S_{t-1} within each episode.

    `x` [T, N, K], `decay` [K], `carried` [N, K] from the rollout before, `keep` [T, N] false where the sum starts afresh
    after step t. Returns the sums [T, N, K] and what is carried on.
    """
    sums = torch.empty_like(x)
    factor = keep.unsqueeze(-1) * decay  # [T, N, K]
    for t in range(len(x)):
        torch.add(x[t], carried, out=sums[t])
        carried = factor[t] * sums[t]
    return sums, carried


class Episode(NamedTuple):
    """One that has ended."""

    ret: float
    length: float
    success: float
    """NaN where the world does not tell."""


class EpisodeWindow:
    """The most recent episodes, on the host."""

    def __init__(self, size: int):
        self.episodes: deque[Episode] = deque(maxlen=size)

    def extend(self, episodes: Iterable[Episode]) -> None:
        self.episodes.extend(episodes)

    def figures(self) -> dict[str, float]:
        if not self.episodes:
            return {}
        n = len(self.episodes)
        figures = {
            "recent/count": float(n),
            "recent/return": sum(e.ret for e in self.episodes) / n,
            "recent/length": sum(e.length for e in self.episodes) / n,
        }
        told = [e.success for e in self.episodes if e.success == e.success]
        if told:
            figures["recent/success"] = sum(told) / len(told)
        return figures


def latest_rows(ended: Tensor, most: int = WINDOW_PER_ROLLOUT) -> tuple[Tensor, Tensor]:
    """Positions in the flattened [T * N] of the latest ended episodes, oldest first, and which of them are real.

    A fixed number of rows, so that nothing has to be read from the device to know the shape.
    """
    order = torch.arange(1, ended.numel() + 1, device=ended.device) * ended.reshape(-1)
    latest = order.topk(min(most, ended.numel())).values.flip(0)
    return (latest - 1).clamp(min=0), latest > 0
