"""Schedules of the learning rate, the clip range, the entropy bonus and the discount; all are set once an iteration."""
from __future__ import annotations

import math

import numpy as np

from wavedash.config import DecayConfig, PPOConfig, ScheduleConfig


class Schedule:
    """Computes `multiplier` from the progress of the run, or from how far the last update moved the policy."""

    def __init__(self, config: ScheduleConfig | DecayConfig):
        self.config = config
        self.multiplier = 1.0

    def advance(self, progress: float, kl: float | None) -> float:
        """Returns the next multiplier. `progress` is the finished share of the run; `kl` is that of the last update, None when
        there was none."""
        config = self.config
        progress = min(max(progress, 0.0), 1.0)
        if config.kind == "constant":
            self.multiplier = 1.0
        elif config.kind == "linear":
            self.multiplier = 1.0 - (1.0 - config.floor) * progress
        elif config.kind == "cosine":
            self.multiplier = config.floor + (1.0 - config.floor) * 0.5 * (1.0 + math.cos(math.pi * progress))
        elif isinstance(config, ScheduleConfig) and config.kind == "kl" and kl is not None:
            if kl > 2.0 * config.target_kl:
                self.multiplier /= config.factor
            elif kl < 0.5 * config.target_kl:
                self.multiplier *= config.factor
            low, high = config.bounds
            self.multiplier = min(max(self.multiplier, low), high)
        return self.multiplier

    def change(self, config: ScheduleConfig | DecayConfig, progress: float | None) -> None:
        """Takes over other options, as a resumed run does. `progress` is None before the first iteration."""
        self.config = config
        if progress is not None:
            self.resume(progress)

    def resume(self, progress: float) -> None:
        """Goes on from a saved multiplier, which only the kind `kl` needs: the others follow from their options and from the
        progress of the run, both of which may have changed."""
        if self.config.kind != "kl":
            self.advance(progress, None)


def discount(config: PPOConfig, progress: float) -> float:
    """Returns gamma when this share of the run is finished. The horizon 1 / (1 - gamma) moves geometrically: equal steps of
    gamma itself would spend nine tenths of a run from 0.99 to 0.999 on horizons below 530."""
    if config.gamma_end is None:
        return config.gamma
    progress = min(max(progress, 0.0), 1.0)
    return 1.0 - (1.0 - config.gamma) ** (1.0 - progress) * (1.0 - config.gamma_end) ** progress


def chain(config: PPOConfig, gamma: float) -> float:
    """Returns gamma * lambda, by which advantages decay. A gamma that moves is a float32 on the device, so its product is
    rounded as it would be there."""
    if config.gamma_end is None:
        return gamma * config.gae_lambda
    return float(np.float32(gamma) * np.float32(config.gae_lambda))
