"""Strategies: whom of the pool the policy shall play against, as weights of its members.

Each strategy gives every member a preference of 0 or more, from what is known of it: how old it is, how strong, how often the
policy beats it. A temperature above 1 evens preferences out, one below 1 sharpens them: a weight is preference^(1/temperature).
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wavedash.config import OpponentsConfig
from wavedash.errors import UserError

Weights = NDArray[np.float64]


class Known(NamedTuple):
    """What is known of a member of the pool."""

    step: int
    """Agent steps at which it was frozen; members from elsewhere have 0"""
    rating: float
    win_rate: float
    """The share of points that the policy takes from it, 0.5 where nothing is known"""


class Strategy(ABC):
    """How opponents are chosen."""

    def __init__(self, temperature: float = 1.0) -> None:
        if not temperature > 0:
            raise UserError(f"the temperature of a strategy must be above 0, not {temperature}")
        self.temperature = temperature

    @abstractmethod
    def preference(self, members: Sequence[Known], own_rating: float) -> Weights:
        """[K]: 0 or more for each member."""

    def weights(self, members: Sequence[Known], own_rating: float) -> Weights:
        """[K], summing to 1. Where no member is preferred at all, all are alike."""
        preference = np.asarray(self.preference(members, own_rating), dtype=np.float64)
        highest = preference.max()
        if not highest > 0:
            return np.full(len(members), 1 / len(members))
        weights = (preference / highest) ** (1 / self.temperature)
        return weights / weights.sum()


class Uniform(Strategy):
    """All members alike, whatever the temperature."""

    def preference(self, members: Sequence[Known], own_rating: float) -> Weights:
        return np.ones(len(members))


class Recent(Strategy):
    """Newer members more often: each is `decay` times as likely as the one after it."""

    def __init__(self, decay: float = 0.8, temperature: float = 1.0) -> None:
        super().__init__(temperature)
        if not 0 < decay <= 1:
            raise UserError(f"decay must be above 0 and up to 1, not {decay}")
        self.decay = decay

    def preference(self, members: Sequence[Known], own_rating: float) -> Weights:
        steps = np.array([member.step for member in members])
        newer = (steps[None, :] > steps[:, None]).sum(1)
        return self.decay**newer


class NearRating(Strategy):
    """Members about as strong as the policy: those `window` Elo points away are about 0.6 times as likely as equal ones."""

    def __init__(self, window: float = 200.0, temperature: float = 1.0) -> None:
        super().__init__(temperature)
        if not window > 0:
            raise UserError(f"window must be above 0 Elo points, not {window}")
        self.window = window

    def preference(self, members: Sequence[Known], own_rating: float) -> Weights:
        away = (np.array([member.rating for member in members]) - own_rating) / self.window
        return np.exp(-0.5 * (away**2 - (away**2).min()))


class TargetWinRate(Strategy):
    """Members that the policy beats in about a `target` share of the games, give or take `width`."""

    def __init__(self, target: float = 0.6, width: float = 0.15, temperature: float = 1.0) -> None:
        super().__init__(temperature)
        if not 0 <= target <= 1 or not width > 0:
            raise UserError(f"target must be from 0 to 1 and width above 0, not {target} and {width}")
        self.target, self.width = target, width

    def preference(self, members: Sequence[Known], own_rating: float) -> Weights:
        away = (np.array([member.win_rate for member in members]) - self.target) / self.width
        return np.exp(-0.5 * (away**2 - (away**2).min()))


class Pfsp(Strategy):
    """Prioritised fictitious self-play. With x the policy's win rate against a member: (1 - x)^power, the hardest most often;
    without a power x (1 - x), those of its own strength most often."""

    def __init__(self, power: float | None = None, temperature: float = 1.0) -> None:
        super().__init__(temperature)
        if power is not None and not power >= 0:
            raise UserError(f"power must be 0 or more, or none for x (1 - x); not {power}")
        self.power = power

    def preference(self, members: Sequence[Known], own_rating: float) -> Weights:
        x = np.array([member.win_rate for member in members])
        return x * (1 - x) if self.power is None else (1 - x) ** self.power


def strategy_of(config: OpponentsConfig) -> Strategy:
    """The strategy that a configuration asks for."""
    temperature = config.temperature
    if config.strategy == "uniform":
        return Uniform(temperature)
    if config.strategy == "recent":
        return Recent(config.decay, temperature)
    if config.strategy == "rating":
        return NearRating(config.window, temperature)
    if config.strategy == "target_win_rate":
        return TargetWinRate(config.target, config.width, temperature)
    return Pfsp(config.power, temperature)


def drawn(weights: Weights, places: int, number: float) -> list[int]:
    """Draws who gets each of so many places, as increasing indices into `weights` [K]. `number` is random, from 0 up to 1.
    Everybody gets places * weight of them on average, and never a whole place more or less than that (systematic sampling)."""
    ends = np.cumsum(weights)
    picked = np.searchsorted(ends, (number + np.arange(places)) / places * ends[-1], side="right")
    return [int(index) for index in np.minimum(picked, np.flatnonzero(weights)[-1])]
