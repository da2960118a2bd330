"""Our running moments as rlgym-ppo's WelfordRunningStat, and as what it writes into BOOK_KEEPING_VARS.json."""
from __future__ import annotations

import numpy as np

from wavedash.compat.rlgym_ppo.util.running_stats import WelfordRunningStat
from wavedash.envs.host import Array
from wavedash.policy.normalizer import RunningMoments


class MomentsStat(WelfordRunningStat):
    """A view: what is read is what the learner uses now, what is set it uses from then on."""

    def __init__(self, moments: RunningMoments) -> None:
        self._moments = moments
        self.shape = tuple(moments.mean.shape) or (1,)
        self.ones, self.zeros = np.ones(self.shape, np.float32), np.zeros(self.shape, np.float32)

    @property
    def count(self) -> int:
        return int(self._moments.count)

    @count.setter
    def count(self, number: int) -> None:
        squares = self.running_variance  # a sum over so many: as it is now, until it is set too
        self._moments.count.fill_(float(number))
        self.running_variance = squares

    @property
    def running_mean(self) -> Array:
        return self._moments.mean.cpu().numpy().reshape(self.shape)

    @running_mean.setter
    def running_mean(self, mean: Array) -> None:
        self._fill("mean", mean)

    @property
    def running_variance(self) -> Array:
        return self._moments.var.cpu().numpy().reshape(self.shape) * max(self.count - 1, 1)

    @running_variance.setter
    def running_variance(self, squares: Array) -> None:
        variance = np.asarray(squares, np.float64) / max(self.count - 1, 1)
        self._fill("var", np.where(variance > 0.0, variance, 1.0))

    def _fill(self, name: str, values: Array) -> None:
        moments = self._moments
        target = getattr(moments, name)
        target.copy_(target.new_tensor(np.asarray(values, np.float64)).expand(self.shape).reshape(target.shape))
        moments.shift.copy_(moments.mean)
        moments.scale.copy_(moments.var.clamp(min=1e-8).rsqrt())


def empty_stat() -> dict[str, object]:
    """What rlgym-ppo writes where returns are not standardised."""
    return {"mean": [0.0], "var": [0.0], "shape": [1], "count": 0}
