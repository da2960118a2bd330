"""Running normalisation whose statistics do not change during a rollout and its update.

While a rollout is collected, sums are accumulated; `commit` adds them to the statistics when the update is over. So the same
observation is normalised in the same way when the policy acts on it and when it learns from it.
"""
from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

from wavedash.envs.obs import Obs, map_obs, module_name, sensed, sensed_spaces


class RunningMoments(nn.Module):
    """Keeps mean and variance of everything seen, merged batch by batch (Chan et al. 1979), in float64.

    Batches are accumulated as sums of *standardised* values: shifted and scaled by the current statistics they are near 0 and
    1, where float32 sums keep their digits. The sums of several processes are added before `commit`.
    """

    count: Tensor
    mean: Tensor
    var: Tensor
    shift: Tensor
    scale: Tensor
    sums: Tensor

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("var", torch.ones(shape, dtype=torch.float64))
        # The hot path uses float32 copies of the statistics, as (x - shift) * scale.
        self.register_buffer("shift", torch.zeros(shape))
        self.register_buffer("scale", torch.ones(shape))
        # Sums since the last commit: rows [count, sum, sum of squares] of standardised values.
        self.register_buffer("sums", torch.zeros((3, *shape), dtype=torch.float64), persistent=False)

    @property
    def started(self) -> bool:
        """Whether anything has been committed. It is a host sync, so it is read at the start of a run only."""
        return bool(self.count > 0)

    def standardize(self, x: Tensor) -> Tensor:
        return (x - self.shift) * self.scale

    def accumulate(self, standardized: Tensor, weight: Tensor) -> None:
        """Adds a batch [N, *shape] with weights [N], which are 1 or 0."""
        flat = standardized.flatten(1) if standardized.dim() > 1 else standardized.unsqueeze(-1)
        powers = torch.stack([torch.ones_like(flat), flat, flat.square()])  # [3, N, numbers]
        powers.masked_fill_((weight == 0).unsqueeze(-1), 0.0)  # inactive rows may hold NaN, and 0 * NaN is NaN
        self.sums += powers.sum(1).view_as(self.sums)

    def centre_on(self, x: Tensor) -> None:
        """Shifts by the median of a first batch, before there are statistics, so that values far from 0 keep their digits.

        The mean would not do: it is not known yet which rows are active, and the others may hold anything.
        """
        self.shift.copy_(x.float().nanmedian(0).values.nan_to_num(0.0, 0.0, 0.0))
        self.mean.copy_(self.shift)

    def commit(self) -> None:
        """Adds the accumulated batch to the statistics. One that is empty or not finite (a NaN observation) is left out."""
        count, total, squares = self.sums.unbind(0)
        valid = (count > 0) & (total + squares).isfinite()
        batch = count.clamp(min=1.0)
        batch_mean = self.shift + (total / batch) / self.scale.double()
        batch_var = (squares / batch - (total / batch).square()).clamp(min=0.0) / self.scale.double().square()
        merged = self.count + count
        share = count / merged.clamp(min=1.0)
        delta = batch_mean - self.mean
        var = self.var * (1 - share) + batch_var * share + delta.square() * share * (1 - share)
        self.var.copy_(torch.where(valid, var, self.var))
        self.mean.copy_(torch.where(valid, self.mean + delta * share, self.mean))
        self.count += count.reshape(-1)[0]
        self.shift.copy_(self.mean)
        self.scale.copy_(self.var.clamp(min=1e-8).rsqrt())
        self.sums.zero_()


class ObsNormalizer(nn.Module):
    """Standardises every float part of an observation and clips it; images and masks pass unchanged."""

    def __init__(self, space: gymnasium.Space[Any], clip: float):
        super().__init__()
        self.clip = clip
        floats = {key: part for key, part in sensed_spaces(space).items() if np.issubdtype(part.dtype, np.floating)}
        self.keys = list(floats)
        self.parts = nn.ModuleDict({module_name(key): RunningMoments(part.shape) for key, part in floats.items()})

    def moments(self, key: str) -> RunningMoments:
        """The statistics of a key."""
        return self._moments()[key]

    def _moments(self) -> dict[str, RunningMoments]:
        return dict(zip(self.keys, self.parts.values(), strict=True))  # type: ignore[arg-type]

    @property
    def started(self) -> bool:
        """Whether anything has been committed. It is a host sync, so it is read at the start of a run only."""
        return any(moments.started for moments in self._moments().values())

    def standardize(self, obs: Obs) -> Obs:
        moments = self._moments()
        if isinstance(obs, dict):
            return {key: moments[key].standardize(value) if key in moments else value for key, value in obs.items()}
        return moments["obs"].standardize(obs) if "obs" in moments else obs

    def clipped(self, standardized: Obs) -> Obs:
        return map_obs(lambda x: x.clamp(-self.clip, self.clip) if x.is_floating_point() else x, standardized)

    def forward(self, obs: Obs) -> Obs:
        return self.clipped(self.standardize(obs))

    def accumulate(self, standardized: Obs, weight: Tensor) -> None:
        values = sensed(standardized)
        for key, moments in self._moments().items():
            moments.accumulate(values[key], weight)

    def centre_on(self, obs: Obs) -> None:
        values = sensed(obs)
        for key, moments in self._moments().items():
            moments.centre_on(values[key])

    def commit(self) -> None:
        for moments in self._moments().values():
            moments.commit()
