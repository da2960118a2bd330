"""Looks at observations as the networks see them: numbers that never change, huge ones, and rows that all see the same."""
from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from wavedash.envs.obs import is_picture, sensed
from wavedash.findings import Findings, few, number, table
from wavedash.ppo.rollout import Rollout

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

HUGE = 100.0
"""Numbers beyond it saturate or drown what else a network sees; most should be between -1 and 1"""


class Observations:
    """Smallest, largest and mean of every number of an observation, over rollouts."""

    def __init__(self) -> None:
        self.low: dict[str, Tensor] = {}
        self.high: dict[str, Tensor] = {}
        self.sums: dict[str, Tensor] = {}
        self.count = 0

    def look(self, rollout: Rollout) -> None:
        """Goes step by step: a copy of all observations of a rollout may not fit into the memory of a GPU."""
        self.count += int(rollout.active.sum())
        for key, steps in sensed(rollout.obs).items():
            if is_picture(tuple(steps.shape[2:])):
                continue
            for x, active in zip(steps, rollout.active, strict=True):
                seen = x[active].flatten(1).double()  # [n, numbers]
                if len(seen):
                    self._add(key, seen)

    def _add(self, key: str, seen: Tensor) -> None:
        low, high, total = seen.amin(0), seen.amax(0), seen.sum(0)
        self.low[key] = torch.minimum(self.low[key], low) if key in self.low else low
        self.high[key] = torch.maximum(self.high[key], high) if key in self.high else high
        self.sums[key] = self.sums[key] + total if key in self.sums else total

    def findings(self, learner: Learner) -> Findings:
        found = Findings()
        for key in self.low:
            low, high, total = (x[key].cpu() for x in (self.low, self.high, self.sums))
            _examine(found, "observation" if key == "obs" else f"observation {key!r}", low, high,
                     learner.policy.normalizer is not None)
            found.detail(f"{key}, number by number:", *table(("number", "least", "mean", "most"), (
                (i, number(low[i]), number(total[i] / self.count), number(high[i])) for i in range(len(low)))), "")
        return found


def _examine(found: Findings, name: str, low: Tensor, high: Tensor, normalised: bool) -> None:
    largest = torch.maximum(low.abs(), high.abs())
    constant, huge = ((x.nonzero().flatten().tolist()) for x in (low == high, largest > HUGE))
    found.say(f"{name}: {len(low)} numbers from {number(low.min(), 3)} to {number(high.max(), 3)}"
              f"{', as normalised' if normalised else ''}; {len(constant)} never change"
              + (f": {few(constant, 24)}" if 0 < len(constant) < len(low) else ""))
    if len(constant) == len(low):
        found.problem(f"the {name} is always the same: the policy cannot see what happens")
    elif len(constant) > len(low) / 2:
        found.problem(f"{len(constant)} of {len(low)} numbers of the {name} never change: {few(constant)}")
    if huge:
        worst = int(largest.argmax())
        found.problem(f"{len(huge)} of {len(low)} numbers of the {name} are huge, number {worst} from {number(low[worst])} to "
                      f"{number(high[worst])}: scale them to about -1 to 1, or set ppo.normalize_obs=true")
