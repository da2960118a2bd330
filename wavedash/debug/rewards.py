"""`debug.rewards`: every term of the reward in the first steps, and which of them is most of what is paid."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from wavedash.debug.report import DebugReport
from wavedash.debug.trial import Played, a_few, play, player
from wavedash.envs.kinds import kind_of
from wavedash.envs.vec_env import VecEnv
from wavedash.findings import Findings, number, table
from wavedash.ppo.listener import IterationReport
from wavedash.runs.folder import RunFolder

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

PREFIX = "reward/"
"""Metrics of a step whose names begin so are the terms of its reward"""
DROWNS = 0.9
"""The share of all that is paid above which a term drowns the others"""
CLIPPED = 0.01
"""The share of scaled rewards beyond `ppo.reward_clip` from which it matters"""
SHOWN_STEPS, SHOWN_ROWS = 6, 2


class Rewards(DebugReport):
    """Plays a few steps apart from the training, then adds up what the first iterations paid."""

    switch = "rewards"

    def __init__(self, run: RunFolder, iterations: int) -> None:
        super().__init__(run, iterations)
        self.paid: list[Tensor] = []
        self.terms: dict[str, float] = {}
        self.steps = self.main_steps = 0
        self.clipped = self.largest = 0.0

    def before(self, learner: Learner) -> Findings:
        config, device = learner.config.env, learner.env.device
        found = Findings()
        with player(learner) as policy:
            with a_few(config, device) as env:
                played = [_kept(step) for step in play(env, policy)]
                _first_steps(found, env, played)
                _whole_trial(found, played)
            found.add(kind_of(config).debug_report(self.switch, config, device, policy))
        return found

    def look(self, learner: Learner, report: IterationReport) -> None:
        rollout, moments, clip = learner.rollout, learner.return_moments, learner.config.ppo.reward_clip
        reward = rollout.reward[rollout.active]
        self.steps += len(reward)
        lane = learner.collector.lane
        main_steps = len(reward) if lane is None else int((rollout.active & (lane == 0)).sum())
        self.main_steps += main_steps
        self.paid.append(torch.stack([reward.sum(), reward.abs().sum(), (reward != 0).sum()]).double().cpu())
        if moments is not None and len(reward):
            scaled = (reward * moments.scale).abs()
            self.clipped += float((scaled > clip).sum())
            self.largest = max(self.largest, float(scaled.max()))
        for name, x in report.metrics.items():
            if name.startswith(f"env/{PREFIX}"):
                term = name.removeprefix(f"env/{PREFIX}")
                self.terms[term] = self.terms.get(term, 0.0) + x * main_steps

    def conclude(self, learner: Learner) -> Findings:
        found = Findings()
        total, size, times = torch.stack(self.paid).sum(0).tolist()
        found.say(f"{self.steps:,} steps were paid {total / max(1, self.steps):.4g} each on average, "
                  f"{size / max(1, self.steps):.4g} without regard to sign; {times / max(1, self.steps):.0%} of them were paid "
                  "something")
        if not times:
            found.problem(f"no reward was paid in {self.steps:,} steps, so there is nothing to learn from: pay for something "
                          "that random play already does now and then")
        if self.terms:
            where = f" in the {self.main_steps:,} steps of the main task" if learner.env.lanes else ""
            found.say(f"what each term paid{where}, summed over these iterations, before it is shared between agents:",
                      *table(("term", "sum", "per step"), (
                          (term, f"{x:.4g}", f"{x / max(1, self.main_steps):.4g}")
                          for term, x in sorted(self.terms.items(), key=lambda item: -abs(item[1])))))
        self._clipped(found, learner)
        return found

    def _clipped(self, found: Findings, learner: Learner) -> None:
        """Says what becomes of large rewards where rewards are scaled and clipped."""
        if learner.return_moments is None:
            return
        clip, share = learner.config.ppo.reward_clip, self.clipped / max(1, self.steps)
        most = clip / float(learner.return_moments.scale)
        found.say(f"by ppo.normalize_reward and ppo.reward_clip={clip:g}, whatever pays more than {number(most, 3)} in one "
                  f"step now counts as {number(most, 3)}; that was so in {self.clipped:.0f} of {self.steps:,} steps")
        if share > CLIPPED:
            found.problem(f"{share:.1%} of the rewards are beyond ppo.reward_clip={clip:g} after scaling, up to "
                          f"{number(self.largest, 3)}, and are cut there: raise ppo.reward_clip, or make rewards more alike in "
                          "size")


def _kept(played: Played) -> tuple[Tensor, dict[str, Tensor], Tensor]:
    """Reward [N], terms [N] by name, and active rows [N] without those that play a lane, as copies on the host. A lane pays for
    other things: its terms would hide which of them drowns the others in the main task."""
    terms = {name.removeprefix(PREFIX): x.expand(played.step.reward.shape).float().cpu().clone()
             for name, x in played.step.metrics.items() if name.startswith(PREFIX)}
    step = played.step
    active = step.active if step.lane is None else step.active & (step.lane == 0)
    return step.reward.float().cpu().clone(), terms, active.cpu().clone()


Kept = tuple[Tensor, dict[str, Tensor], Tensor]


def _first_steps(found: Findings, env: VecEnv, played: Sequence[Kept]) -> None:
    """Every term of the first steps of a few rows."""
    rows = played[0][2].nonzero().flatten().tolist()[: SHOWN_ROWS if played[0][1] else 1]
    terms = [name for name, x in played[0][1].items() if not bool(x[rows].isnan().all())]  # others are only in lanes
    for row in rows:
        found.say(f"the first steps of {env.name_row(row)}, played apart from the training:")
        found.say(*table(("step", *terms, "paid"), (
            (t + 1, *(number(each[name][row]) for name in terms), number(reward[row]))
            for t, (reward, each, _) in enumerate(played[:SHOWN_STEPS]))), "")


def _whole_trial(found: Findings, played: Sequence[Kept]) -> None:
    """The share of each term over all steps of the trial."""
    active = torch.stack([active for _, _, active in played])
    terms = {name: torch.stack([each[name] for _, each, _ in played])[active] for name in played[0][1]}
    terms = {name: x[~x.isnan()] for name, x in terms.items() if not bool(x.isnan().all())}  # NaN: a term of lanes alone
    count, whole = int(active.sum()), sum(float(x.abs().sum()) for x in terms.values())
    if not terms or not count:
        return
    rows = []
    for name, x in sorted(terms.items(), key=lambda item: -float(item[1].abs().sum())):
        share = float(x.abs().sum()) / whole if whole else 0.0
        paid = float((x != 0).float().mean())
        rows.append((name, f"{share:.1%}", number(x.mean()), number(x.min()), number(x.max()), f"{paid:.1%}"))
        if share > DROWNS and len(terms) > 1:
            found.problem(f"reward {name} is {share:.0%} of everything that was paid in {count:,} steps: nothing else counts "
                          "beside it. Lower its weight, or raise those of the others")
        if count > 1 and float(x.abs().max()) > 0 and float(x.std()) < 1e-3 * float(x.abs().mean()):
            found.problem(f"reward {name} pays the same in every step, {float(x.mean()):.4g}, whatever is done: nothing is "
                          "learned from it")
    found.say(f"all terms over {count:,} steps of random beginnings; the share is that of all that was paid, without regard to "
              "sign:",
              *table(("term", "share", "mean", "least", "most", "paid in"), rows))
    never = [name for name, x in terms.items() if not bool((x != 0).any())]
    if never:
        found.say(f"not paid in these steps: {', '.join(never)} (events such as goals are rare at first; weights may be 0)")
