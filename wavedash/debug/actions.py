"""`debug.actions`: what can be chosen, what the first steps chose, and what came of it."""
from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from wavedash.debug.report import DebugReport
from wavedash.debug.trial import a_few, play, player
from wavedash.envs.kinds import kind_of
from wavedash.envs.obs import action_mask, sensed
from wavedash.envs.row_spec import choice_sizes
from wavedash.envs.vec_env import Obs
from wavedash.findings import Findings, few, number, table
from wavedash.policy.heads import ContinuousHead
from wavedash.ppo.listener import IterationReport
from wavedash.runs.folder import RunFolder

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

ALWAYS = 0.95
"""The share of one choice above which a policy does nothing else"""
NO_CHOICE = 0.5
"""The share of steps in which a mask leaves one choice only, from which little can be learned"""
BEYOND = 0.5
"""The share of sampled actions beyond their bounds, from which the bounds decide and not the policy"""
SHOWN_STEPS, SHOWN_ROWS, SHOWN_NUMBERS = 5, 2, 6


class Actions(DebugReport):
    """Shows the first steps, then counts what was chosen in the first iterations."""

    switch = "actions"

    def __init__(self, run: RunFolder, iterations: int) -> None:
        super().__init__(run, iterations)
        self.chosen: Tensor | None = None
        """Discrete: how often each entry of the action was each choice, all choices one after the other"""
        self.offered: Tensor | None = None
        self.steps = self.forced = 0
        self.continuous: list[Tensor] = []

    def before(self, learner: Learner) -> Findings:
        config, device = learner.config.env, learner.env.device
        with player(learner) as policy:
            found = kind_of(config).debug_report(self.switch, config, device, policy)
            if found is not None:
                return found
            found = Findings()
            with a_few(config, device, SHOWN_ROWS) as env:
                rows: list[list[tuple[object, ...]]] = [[] for _ in range(min(env.num_rows, SHOWN_ROWS))]
                for t, (obs, action, step, _) in enumerate(play(env, policy, SHOWN_STEPS)):
                    for row, lines in enumerate(rows):
                        over = "ended" if bool(step.terminated[row]) else "cut" if bool(step.truncated[row]) else ""
                        lines.append((t + 1, _seen(obs, row), _shown(action[row]), _seen(step.final_obs, row),
                                      number(step.reward[row]), over))
                for row, lines in enumerate(rows):
                    found.say(f"the first steps of {env.name_row(row)}, played apart from the training:",
                              *table(("step", "it saw", "it did", "then it saw", "reward", ""), lines), "")
        return found

    def look(self, learner: Learner, report: IterationReport) -> None:
        rollout, head = learner.rollout, learner.policy.head
        active = rollout.active
        action = rollout.action[active]
        self.steps += len(action)
        if isinstance(head, ContinuousHead):
            unit = head.unit(action)
            self.continuous.append(torch.stack([unit.sum(0), unit.square().sum(0), (unit.abs() > 1).sum(0)]).double().cpu())
            return
        sizes = choice_sizes(learner.policy.action_space)
        offsets = torch.tensor([0, *sizes[:-1]], device=action.device).cumsum(0)
        counts = torch.bincount((action.view(len(action), -1) + offsets).flatten(), minlength=sum(sizes)).cpu()
        self.chosen = counts if self.chosen is None else self.chosen + counts
        mask = action_mask(rollout.obs)
        if mask is not None:
            for step, rows in zip(mask, active, strict=True):
                allowed = step[rows].bool()
                offered = allowed.sum(0).cpu()
                self.offered = offered if self.offered is None else self.offered + offered
                parts = torch.split(allowed, sizes, -1)
                self.forced += int(torch.stack([part.sum(-1) == 1 for part in parts]).all(0).sum())

    def conclude(self, learner: Learner) -> Findings:
        found = Findings()
        if not self.steps:
            found.problem("no row was active, so nothing was chosen")
        elif self.chosen is None:
            self._continuous(found, learner.policy.head)
        else:
            self._discrete(found, choice_sizes(learner.policy.action_space))
        return found

    def _discrete(self, found: Findings, sizes: list[int]) -> None:
        assert self.chosen is not None
        offered = torch.full_like(self.chosen, self.steps) if self.offered is None else self.offered
        for entry, (chosen, open_to) in enumerate(zip(*(torch.split(x, sizes) for x in (self.chosen, offered)), strict=True)):
            name = "action" if len(sizes) == 1 else f"action[{entry}]"
            shares = chosen / self.steps
            best = int(shares.argmax())
            never = ((chosen == 0) & (open_to > 0)).nonzero().flatten().tolist()
            found.say(f"{name}: {int((chosen > 0).sum())} of {len(chosen)} choices were chosen in {self.steps:,} steps, most "
                      f"often {best} ({float(shares[best]):.1%})" + (f"; never, though allowed: {few(never)}" if never else ""))
            if float(shares[best]) > ALWAYS and len(chosen) > 1:
                found.problem(f"{name} is {best} in {float(shares[best]):.0%} of {self.steps:,} steps: the policy does nothing "
                              "else. Raise ppo.entropy_coef, or look whether a mask or a reward (debug.rewards) leaves it no "
                              "choice")
            if self.offered is not None:
                forbidden = (open_to == 0).nonzero().flatten().tolist()
                found.say(f"  the mask allows {float(open_to.sum()) / self.steps:.1f} of {len(chosen)} on average"
                          + (f"; it has never allowed {few(forbidden)}" if forbidden else ""))
                if len(forbidden) > len(chosen) / 2:
                    found.problem(f"the mask has never allowed {len(forbidden)} of {len(chosen)} choices of the {name} in "
                                  f"{self.steps:,} steps: {few(forbidden)}. True must mean allowed")
            found.detail(f"{name}, choice by choice:", *table(("choice", "chosen", "allowed"), (
                (i, f"{float(shares[i]):.2%}", f"{float(open_to[i]) / self.steps:.1%}") for i in range(len(chosen)))), "")
        if self.offered is not None and self.forced > NO_CHOICE * self.steps:
            found.problem(f"the mask leaves one choice only in {self.forced / self.steps:.0%} of {self.steps:,} steps: nothing "
                          "can be learned there. True must mean allowed")

    def _continuous(self, found: Findings, head: ContinuousHead) -> None:
        total, squares, beyond = torch.stack(self.continuous).sum(0).div(self.steps).unbind(0)
        deviation = (squares - total.square()).clamp(min=0).sqrt()
        found.say("actions as sampled, in units where -1 to 1 is their range:" if head.bounded else "actions as sampled:",
                  *table(("action", "mean", "deviation", "beyond the bounds"), (
                      (i, f"{total[i]:.3g}", f"{deviation[i]:.3g}", f"{float(beyond[i]):.1%}" if head.bounded else "")
                      for i in range(len(total)))))
        if head.bounded:
            for i in (beyond > BEYOND).nonzero().flatten().tolist():
                found.problem(f"action[{i}] is beyond its bounds in {float(beyond[i]):.0%} of {self.steps:,} steps and is cut "
                              "there: lower policy.initial_std, or choose policy.distribution=tanh or beta")
        for i in (deviation < 1e-3).nonzero().flatten().tolist():
            found.problem(f"action[{i}] is {float(total[i]):.3g} in every step: the policy does not explore. Raise "
                          "policy.initial_std or ppo.entropy_coef")


def _seen(obs: Obs, row: int) -> str:
    return " ".join(_shown(x[row]) for x in sensed(obs).values())


def _shown(x: Tensor) -> str:
    """The first numbers of a row."""
    numbers = x.flatten()[:SHOWN_NUMBERS].tolist()
    more = " ..." if x.numel() > SHOWN_NUMBERS else ""
    return " ".join(f"{number:.3g}" for number in numbers) + more
