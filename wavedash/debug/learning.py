"""`debug.learning`: how far each update moves the policy, and what it learns from: advantages, values, observations."""
from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from wavedash.debug.observations import Observations
from wavedash.debug.report import DebugReport
from wavedash.findings import Findings, table
from wavedash.ppo.listener import IterationReport
from wavedash.ppo.loss import ENTROPY, KL
from wavedash.runs.folder import RunFolder

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

COLUMNS = {
    "rate": "optim/learning_rate", "moved": "optim/moved", "kl": KL, "clipped": "policy/clip_fraction", "entropy": ENTROPY,
    "gradient": "optim/grad_norm", "reward": "rollout/reward", "advantage sd": "advantage/std", "value": "value/mean",
    "target": "target/mean", "target sd": "target/std", "explained": "loss/explained_variance",
}
"""The columns of the table, and the metric of each"""
STILL_KL, WILD_KL = 1e-9, 0.2
"""Below and above, an iteration moves the policy by next to nothing, or by far too much: usual is 0.001 to 0.03"""
WILD_CLIP = 0.6
"""The share of clipped samples above which most of what was collected is thrown away"""
COLLAPSED = 0.1
"""The share of the greatest entropy below which a policy hardly explores"""
NATS_LOST = 1.0
"""A continuous policy whose entropy per action falls by more has a third of its deviation left"""
FAR = 30.0
"""Value targets that are so large on average cost a critic many updates, because its first values are near 0"""


class Learning(DebugReport):
    """Keeps a row of numbers of every iteration."""

    switch = "learning"

    def __init__(self, run: RunFolder, iterations: int) -> None:
        super().__init__(run, iterations)
        self.rows: list[dict[str, float]] = []
        self.observations = Observations()

    def look(self, learner: Learner, report: IterationReport) -> None:
        rollout, optimizer = learner.rollout, learner.updater.optimizer
        active = rollout.active
        before = torch.linalg.vector_norm(learner.before_update["parameters"])
        row = dict(report.metrics)
        row |= {"iteration": report.iteration, "optim/moved": row["optim/update_size"] / max(float(before), 1e-12)}
        row |= _moments("advantage", rollout.advantage[active]) | _moments("value", rollout.value[active])
        row |= _moments("target", rollout.returns[active]) | {"reward/std": _moments("", rollout.reward[active])["/std"]}
        row |= {"active": float(active.float().mean()), "reward/paid": float((rollout.reward[active] != 0).float().mean())}
        if optimizer.max_grad_norm is not None and "optim/grad_norm" in row:
            row["gradient/over"] = row["optim/grad_norm"] / optimizer.max_grad_norm
        self.rows.append(row)
        self.observations.look(rollout)

    def conclude(self, learner: Learner) -> Findings:
        found = Findings()
        cells = [[f"{int(row['iteration'])}", *(_number(row.get(metric)) for metric in COLUMNS.values())] for row in self.rows]
        found.say(*table(["iteration", *COLUMNS], cells))
        found.say("moved: length of the update over that of all weights; target: what the critic learns, in units of the reward"
                  + (" as it is scaled" if learner.return_moments is not None else ""))
        self._movement(found, learner)
        self._entropy(found, learner)
        self._signal(found, learner)
        found.add(self.observations.findings(learner))
        return found

    def _movement(self, found: Findings, learner: Learner) -> None:
        rows, rate, warmup = self.rows, learner.config.ppo.learning_rate, learner.config.ppo.critic_warmup
        free = [row for row in rows if row["iteration"] > warmup]
        if len(free) < len(rows):
            found.say(f"only the critic learned in {len(rows) - len(free)} of them (ppo.critic_warmup={warmup})")
        if all(row["optim/update_size"] == 0 for row in rows):
            why = (f"the learning rate is {rows[-1]['optim/learning_rate']:g}: raise ppo.learning_rate"
                   if rows[-1]["optim/gradient_steps"] else "no gradient step was applied: every gradient was 0 or not finite")
            found.problem(f"no weight has changed in {len(rows)} iterations, because {why}")
        elif free and all(row.get(KL, 1.0) < STILL_KL for row in free):
            found.problem(f"the policy acts as before every update (KL below {STILL_KL:g}): raise ppo.learning_rate={rate:g}, "
                          "or ppo.epochs; usual is a KL of 0.001 to 0.03")
        wild = [row for row in free if row.get(KL, 0.0) > WILD_KL]
        cut = [row for row in free if row.get("policy/clip_fraction", 0.0) > WILD_CLIP]
        if wild or 2 * len(cut) > len(free):
            largest = max(row.get(KL, 0.0) for row in free)
            found.problem(f"updates throw the policy around: of {len(free)} iterations {len(wild)} had a KL above {WILD_KL:g} "
                          f"(up to {largest:.2g}), and {len(cut)} more than {WILD_CLIP:.0%} of their samples clipped. Lower "
                          f"ppo.learning_rate={rate:g} or ppo.epochs={learner.config.ppo.epochs}, or set ppo.target_kl=0.03")
        if skipped := sum(row["optim/skipped"] for row in rows):
            found.problem(f"{skipped:.0f} gradient steps were not finite and were skipped: look for huge rewards "
                          "(debug.rewards) and observations, or lower ppo.learning_rate")
        if free and all(row.get("gradient/over", 0.0) > 100 for row in free):
            found.problem(f"every gradient is more than 100 times ppo.max_grad_norm={learner.config.ppo.max_grad_norm:g}, "
                          "mostly that of the critic: its targets are too large. Set ppo.normalize_reward=true, or scale the "
                          "rewards")

    def _entropy(self, found: Findings, learner: Learner) -> None:
        known = [row for row in self.rows if ENTROPY in row]
        if not known:
            return
        first, last = known[0], known[-1]
        maximum, head = learner.policy.head.max_entropy, learner.policy.head
        advice = (f"raise ppo.entropy_coef={learner.config.ppo.entropy_coef:g}, lower ppo.learning_rate, and look whether one "
                  "reward pays for doing always the same (debug.rewards)")
        if maximum is not None:
            found.say(f"entropy: {first[ENTROPY] / maximum:.0%} of what is possible in the first, "
                      f"{last[ENTROPY] / maximum:.0%} in the last of these iterations")
            if last[ENTROPY] < COLLAPSED * maximum:
                found.problem(f"the policy hardly explores any more: its entropy is {last[ENTROPY] / maximum:.1%} of what is "
                              f"possible after {len(self.rows)} iterations; {advice}")
        elif head.action_shape and (first[ENTROPY] - last[ENTROPY]) / head.action_shape[0] > NATS_LOST:
            found.problem(f"the policy's entropy fell from {first[ENTROPY]:.3g} to {last[ENTROPY]:.3g} nats in "
                          f"{len(self.rows)} iterations; {advice}")

    def _rewards(self, found: Findings) -> None:
        rows = self.rows
        if all(row["reward/paid"] == 0 for row in rows):
            found.problem(f"no reward was paid in {len(rows)} iterations, so there is nothing to learn from: pay for something "
                          "that random play already does now and then")
        elif all(row["reward/std"] == 0 for row in rows) and not any(row["rollout/episodes"] for row in rows):
            found.problem(f"every step of every row was paid the same, {rows[-1]['rollout/reward']:g}, and no episode ended: "
                          "no action is better than any other")
        if all(row["advantage/std"] < 1e-7 * max(1.0, abs(row["target/mean"])) for row in rows):
            found.problem("all advantages are equal: no action seems better than any other. The reward must depend on what is "
                          "done")
        last = rows[-1]
        apart = abs(last["target/mean"] - last["value/mean"])
        if apart > FAR and apart > 0.5 * abs(last["target/mean"]):
            found.problem(f"values are far from their targets: {last['value/mean']:.3g} on average, where the targets are "
                          f"{last['target/mean']:.3g} (deviation {last['target/std']:.3g}). Set ppo.normalize_reward=true, or "
                          "scale the rewards so that returns are of the size of 1 to 10")

    def _signal(self, found: Findings, learner: Learner) -> None:
        rows = self.rows
        if (share := rows[-1]["active"]) < 0.5:
            found.problem(f"only {share:.0%} of the rows are learned from: the others are inactive (other players, empty "
                          "seats, dropped episodes)")
        if learner.updater.loss.values:  # a student learns from its teacher, whatever the rewards are
            self._rewards(found)
        if sum(row["optim/gradient_steps"] for row in rows) < 2 * len(rows):
            found.say(f"there is {rows[-1]['optim/gradient_steps']:.0f} gradient step an iteration: with ppo.minibatch_size="
                      f"{learner.config.ppo.minibatch_size} a minibatch is the whole batch")


def _moments(name: str, x: Tensor) -> dict[str, float]:
    mean, deviation = (float(x.double().mean()), float(x.double().std(correction=0))) if len(x) else (0.0, 0.0)
    return {f"{name}/mean": mean, f"{name}/std": deviation}


def _number(x: float | None) -> str:
    return "" if x is None else f"{x:.3g}"
