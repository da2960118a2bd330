"""Means and shares with their 95 % intervals."""
from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    """Numbers, their mean and its interval."""

    values: list[float]

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    @property
    def std(self) -> float:
        return math.sqrt(sum((x - self.mean) ** 2 for x in self.values) / max(1, len(self.values) - 1))

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self.std / math.sqrt(len(self.values))

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the mean, by the normal approximation."""
        return self.mean - 1.96 * self.error, self.mean + 1.96 * self.error

    def times(self, other: Sample) -> tuple[float, float, float]:
        """The ratio to the mean of `other`, with its interval (computed for the logarithm, since a ratio is not symmetric)."""
        ratio = self.mean / other.mean
        spread = math.exp(1.96 * math.hypot(self.error / self.mean, other.error / other.mean))
        return ratio, ratio / spread, ratio * spread


@dataclass(frozen=True)
class Share:
    """A share of cases and its interval."""

    hits: int
    cases: int

    @property
    def value(self) -> float:
        return self.hits / self.cases if self.cases else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval by Wilson's score, which holds for few cases and near 0 and 1. Without a case it is 0 to 1."""
        if not self.cases:
            return 0.0, 1.0
        z2 = 1.959964**2
        middle = (self.hits + z2 / 2) / (self.cases + z2)
        half = math.sqrt(z2 * (self.hits * (self.cases - self.hits) / self.cases + z2 / 4)) / (self.cases + z2)
        return max(0.0, middle - half), min(1.0, middle + half)

    def minus(self, other: Share) -> tuple[float, float, float]:
        """The difference with its 95 % interval (Newcombe 1998, method 10, from the Wilson intervals); both need a case."""
        (low, high), (other_low, other_high) = self.interval, other.interval
        difference = self.value - other.value
        return (difference, difference - math.hypot(self.value - low, other_high - other.value),
                difference + math.hypot(high - self.value, other.value - other_low))
