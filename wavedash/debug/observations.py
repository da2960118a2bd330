"""Looks at observations as the networks see them: numbers that never change, huge ones, and rows that all see the same."""
from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from wavedash.envs.obs import is_picture, sensed
from wavedash.findings import Findings, few, table
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
        active = rollout.active
        self.count += int(active.sum())
        for key, x in sensed(rollout.obs).items():
            if is_picture(tuple(x.shape[2:])) or not active.any():
                continue
            seen = x[active].flatten(1).float()
            low, high, total = seen.amin(0), seen.amax(0), seen.double().sum(0)
            self.low[key] = torch.minimum(self.low[key], low) if key in self.low else low
            self.high[key] = torch.maximum(self.high[key], high) if key in self.high else high
            self.sums[key] = self.sums[key] + total if key in self.sums else total

    def findings(self, learner: Learner) -> Findings:
        found = Findings()
        normalised = learner.policy.normalizer is not None
        for key, low in self.low.items():
            high = self.high[key]
            name = "observation" if key == "obs" else f"observation {key!r}"
            constant = (low == high).nonzero().flatten().tolist()
            huge = (torch.maximum(low.abs(), high.abs()) > HUGE).nonzero().flatten().tolist()
            found.say(f"{name}: {len(low)} numbers from {float(low.min()):.3g} to {float(high.max()):.3g}"
                      f"{', as normalised' if normalised else ''}; {len(constant)} never change")
            if len(constant) == len(low):
                found.problem(f"the {name} is always the same: the policy cannot see what happens")
            elif len(constant) > len(low) / 2:
                found.problem(f"{len(constant)} of {len(low)} numbers of the {name} never change: {few(constant)}")
            elif constant:
                found.say(f"  these never change: {few(constant, 24)}")
            if huge:
                worst = max(huge, key=lambda index: float(torch.maximum(low.abs(), high.abs())[index]))
                found.problem(f"{len(huge)} of {len(low)} numbers of the {name} are huge, number {worst} from "
                              f"{float(low[worst]):.4g} to {float(high[worst]):.4g}: scale them to about -1 to 1, or set "
                              "ppo.normalize_obs=true")
            found.detail(f"{name}, number by number:", *table(("number", "least", "mean", "most"), (
                (i, f"{float(low[i]):.4g}", f"{float(self.sums[key][i]) / max(1, self.count):.4g}", f"{float(high[i]):.4g}")
                for i in range(len(low)))), "")
        return found
