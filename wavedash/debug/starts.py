"""`debug.starts`: how the first episodes begin, and whether they end at once."""
from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from wavedash.debug.report import DebugReport
from wavedash.debug.trial import a_few, player
from wavedash.envs.kinds import kind_of
from wavedash.envs.obs import sensed
from wavedash.findings import Findings, table
from wavedash.ppo.listener import IterationReport
from wavedash.runs.folder import RunFolder

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

AT_ONCE = 2
"""Steps of an episode that is over before the policy could do anything"""
SHARE_AT_ONCE = 0.2
UNSEEN = 2**40


class Starts(DebugReport):
    """Looks at beginnings before the first iteration, and then at how long episodes last."""

    switch = "starts"

    def __init__(self, run: RunFolder, iterations: int) -> None:
        super().__init__(run, iterations)
        self.lengths: list[int] = []
        """Steps of the episodes whose beginning and end were seen"""
        self.age: Tensor | None = None
        """[N]: steps of the current episode of every row; negative where its beginning was not seen"""
        self.ended = self.truncated = 0

    def before(self, learner: Learner) -> Findings:
        config, device = learner.config.env, learner.env.device
        with player(learner) as policy:
            found = kind_of(config).debug_report(self.switch, config, device, policy) or Findings()
            with a_few(config, device) as env:
                first, second = (sensed(env.reset(seed)) for seed in (0, 1))
                same = all(torch.equal(x, second[key]) and bool((x == x[:1]).all()) for key, x in first.items())
        found.say("all episodes begin with the same observation" if same and env.num_rows > 1 else
                  "episodes begin with different observations")
        return found

    def look(self, learner: Learner, report: IterationReport) -> None:
        rollout = learner.rollout
        done, over = (rollout.done & rollout.active).cpu(), (rollout.done | ~rollout.active).cpu()
        self.ended += int((rollout.terminated & rollout.active).sum())
        self.truncated += int((rollout.truncated & rollout.active & ~rollout.terminated).sum())
        age = torch.full_like(over[0], -UNSEEN, dtype=torch.int64) if self.age is None else self.age
        for t in range(len(over)):
            age = age + 1
            self.lengths += age[done[t] & (age > 0)].tolist()
            age = age.masked_fill(over[t], 0)
        self.age = age

    def conclude(self, learner: Learner) -> Findings:
        found = Findings()
        found.say(f"{self.ended + self.truncated:,} episodes ended: {self.ended:,} really, {self.truncated:,} by a time limit")
        if not self.lengths:
            found.say("no episode both began and ended in these iterations")
            return found
        lengths = torch.tensor(self.lengths, dtype=torch.float32)
        quarter = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0])
        found.say(*table(("steps of an episode", "shortest", "a quarter", "half", "three quarters", "longest"),
                         [(f"{len(lengths):,} whole ones", *(f"{x:.0f}" for x in lengths.quantile(quarter).tolist()))]))
        at_once = float((lengths <= AT_ONCE).float().mean())
        if at_once > SHARE_AT_ONCE:
            found.problem(f"{at_once:.0%} of the episodes are over after {AT_ONCE} steps or fewer: an ending is true from the "
                          "start, or episodes begin where they must end at once")
        return found
