"""Episode returns and lengths are computed for a whole rollout at once."""
from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from wavedash.ppo.rollout import Rollout

WINDOW_PER_ROLLOUT = 256
"""At most this many of the episodes that end in one rollout are remembered one by one (all are counted)."""


def running_sums(x: Tensor, decay: Tensor, carried: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """Computes S_t = x_t + decay * S_{t-1} within each episode.

    `x` [T, N, K], `decay` [K], `carried` [N, K] from the rollout before, `keep` [T, N] false where the sum starts afresh
    after step t. Returns the sums [T, N, K] and what the next rollout carries on from.
    """
    sums = torch.empty_like(x)
    factor = keep.unsqueeze(-1) * decay  # [T, N, K]
    for t in range(len(x)):
        torch.add(x[t], carried, out=sums[t])
        carried = factor[t] * sums[t]
    return sums, carried


class RolloutEpisodes(NamedTuple):
    """The episodes of a rollout, [T, N] each. Sums run from the beginning of the row's episode to this step, included."""

    ended: Tensor
    """Whether the episode ended with this step"""
    returns: Tensor
    length: Tensor
    discounted: Tensor
    """sum of gamma^(t-k) * r_k: the deviation of this is what rewards are scaled by"""


class EpisodeTracker:
    """Follows the episodes of every row from one rollout to the next."""

    def __init__(self, rows: int, gamma: float, device: torch.device):
        self.running = torch.zeros(rows, 3, device=device)
        """[N, 3]: return, length and discounted return of unfinished episodes. They are one tensor, because the loop over time
        then costs a third."""
        self._decay = torch.tensor([1.0, 1.0, gamma], device=device)

    @property
    def gamma(self) -> float:
        return float(self._decay[2])

    @gamma.setter
    def gamma(self, gamma: float) -> None:
        self._decay[2].fill_(gamma)  # an assignment would be a copy from the host, and wait for it

    @property
    def gamma_tensor(self) -> Tensor:
        """Gamma on the device, at an address that stays."""
        return self._decay[2]

    def follow(self, rollout: Rollout) -> RolloutEpisodes:
        active, done = rollout.active, rollout.done
        reward = rollout.reward.nan_to_num(0.0, 0.0, 0.0)  # one bad reward must not stay in the statistics for ever
        each = torch.stack([reward, active.float(), reward], -1)
        sums, running = running_sums(each, self._decay, self.running, active & ~done)
        self.running.copy_(running)
        return RolloutEpisodes(done & active, *sums.unbind(-1))


class Episode(NamedTuple):
    """An episode that has ended."""

    ret: float
    length: float
    success: float
    """1 or 0, or NaN where the environment does not say."""


class EpisodeWindow:
    """Keeps the most recent episodes on the host."""

    def __init__(self, size: int):
        self.episodes: deque[Episode] = deque(maxlen=size)

    def extend(self, episodes: Iterable[Episode]) -> None:
        self.episodes.extend(episodes)

    def metrics(self) -> dict[str, float]:
        if not self.episodes:
            return {}
        n = len(self.episodes)
        metrics = {
            "recent/count": float(n),
            "recent/return": sum(e.ret for e in self.episodes) / n,
            "recent/length": sum(e.length for e in self.episodes) / n,
        }
        known = [e.success for e in self.episodes if e.success == e.success]
        if known:
            metrics["recent/success"] = sum(known) / len(known)
        return metrics


def latest_rows(ended: Tensor, most: int = WINDOW_PER_ROLLOUT) -> tuple[Tensor, Tensor]:
    """Returns positions in the flattened [T * N] of the latest ended episodes, oldest first, and which of them are real.

    Their number is fixed, so that no host sync is needed to know the shape.
    """
    order = torch.arange(1, ended.numel() + 1, device=ended.device) * ended.reshape(-1)
    latest = order.topk(min(most, ended.numel())).values.flip(0)
    return (latest - 1).clamp(min=0), latest > 0
