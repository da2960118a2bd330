"""Headline: which of an environment's own metrics people want to see while it trains."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Headline:
    """A few metrics that are read together, such as events per minute or what each reward pays.

    An environment offers them (`VecEnv.headlines`) and reports show them, without knowing what they mean.
    """

    title: str
    """What the numbers are: "per car and minute"."""
    metrics: Mapping[str, str]
    """Names in `Step.metrics`, or `lane/<lane>/<name>` for those of a lane, in the order of the screen, each with what it is
    called there."""
    shares: bool = False
    """Whether they are amounts of one whole. Each is then shown in per cent of the sum of their absolute values."""

    def measured(self, metrics: Mapping[str, float], prefix: str = "") -> dict[str, float]:
        """The numbers to show, by name, as far as `metrics` has them under `prefix` and name; those of lanes have no prefix.
        Shares are fractions of 1."""
        keys = {name: name if name.startswith("lane/") else prefix + name for name in self.metrics}
        found = {name: metrics[key] for name, key in keys.items() if key in metrics}
        whole = sum(abs(x) for x in found.values())
        return {name: x / whole if whole else 0.0 for name, x in found.items()} if self.shares else found
