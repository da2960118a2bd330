"""Means and shares with their 95 % intervals."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

NORMAL = 1.959964
"""Standard errors on either side that hold 95 % of a normal distribution"""
MANY = 1000
"""Degrees of freedom from which Student's distribution counts as normal: it is 0.1 % wider"""


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
        """95 % interval of the mean by Student's distribution, which holds for few numbers too. NaN for a single one."""
        half = spread_of_sum([(self.error, len(self.values))])
        return self.mean - half, self.mean + half

    def times(self, other: Sample) -> tuple[float, float, float]:
        """The ratio to the mean of `other`, with its interval (computed for the logarithm, since a ratio is not symmetric)."""
        ratio = self.mean / other.mean
        spread = math.exp(spread_of_sum([(abs(one.error / one.mean), len(one.values)) for one in (self, other)]))
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
        z2 = NORMAL**2
        middle = (self.hits + z2 / 2) / (self.cases + z2)
        half = math.sqrt(z2 * (self.hits * (self.cases - self.hits) / self.cases + z2 / 4)) / (self.cases + z2)
        return max(0.0, middle - half), min(1.0, middle + half)

    def minus(self, other: Share) -> tuple[float, float, float]:
        """The difference with its 95 % interval (Newcombe 1998, method 10, from the Wilson intervals); both need a case."""
        (low, high), (other_low, other_high) = self.interval, other.interval
        difference = self.value - other.value
        return (difference, difference - math.hypot(self.value - low, other_high - other.value),
                difference + math.hypot(high - self.value, other.value - other_low))


def spread_of_sum(means: Sequence[tuple[float, int]]) -> float:
    """Half of the 95 % interval of a sum of independent means, of each its standard error and how many numbers it is of (Welch
    and Satterthwaite); NaN if one of them is of a single number."""
    if min(count for _, count in means) < 2:
        return math.nan
    variance = sum(error**2 for error, _ in means)
    uncertain = sum(error**4 / (count - 1) for error, count in means)
    if not uncertain:
        return 0.0
    freedom = int(variance**2 / uncertain + 1e-6)  # one mean of n numbers has n - 1 exactly, but for rounding
    return student_95(freedom) * math.sqrt(variance)


@cache
def student_95(freedom: int) -> float:
    """Standard errors on either side that hold 95 % of Student's distribution with so many degrees of freedom; NaN without
    any."""
    if freedom < 1:
        return math.nan
    if freedom > MANY:
        return NORMAL
    low, high = 0.0, 16.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if _student_within(middle, freedom) < 0.95 else (low, middle)
    return high


def _student_within(t: float, freedom: int) -> float:
    """Probability of Student's distribution between -t and t (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    cos2, odd = math.cos(angle) ** 2, freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= cos2 * k / (k + 1)
    total *= math.sin(angle)
    return 2.0 / math.pi * (angle + total) if odd else total
