"""MomentsStat shows our running moments as rlgym-ppo's WelfordRunningStat."""
from __future__ import annotations

import numpy as np

from wavedash.compat.rlgym_ppo.util.running_stats import WelfordRunningStat
from wavedash.envs.host import Array
from wavedash.policy.normalizer import RunningMoments


class MomentsStat(WelfordRunningStat):
    """A view of the learner's statistics: reading gives the current ones, setting changes them."""

    def __init__(self, moments: RunningMoments) -> None:
        self._moments = moments
        self.shape = tuple(moments.mean.shape) or (1,)
        self.ones, self.zeros = np.ones(self.shape, np.float32), np.zeros(self.shape, np.float32)

    @property
    def count(self) -> int:
        return int(self._moments.count)

    @count.setter
    def count(self, number: int) -> None:
        squares = self.running_variance  # this sum depends on the count, but must not change with it
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
