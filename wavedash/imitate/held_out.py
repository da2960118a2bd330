"""Loss and accuracy on episodes that are not learned from, measured now and then while a policy imitates."""
from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from wavedash.envs.obs import map_obs
from wavedash.errors import UserError
from wavedash.imitate.loss import ACCURACY, ERROR, LOSS, SHARE, measured, terms
from wavedash.imitate.samples import Samples
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.listener import IterationReport, Listener

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)

STEPS_AT_ONCE, EPISODES_AT_ONCE = 4096, 1024
"""Rows that are measured side by side, without and with memory"""


class HeldOut(Listener):
    """Measures the policy on samples that are held out, and sees to it that a run goes on with the file that it began with."""

    saved_as = "imitate"
    live = ("imitate.every",)

    def __init__(self, samples: Samples, held_out: Tensor, every: int, sha256: str) -> None:
        """`held_out`: the numbers of the samples, whole episodes one after another. `sha256`: of the file."""
        self.samples, self.held_out, self.every, self.sha256 = samples, held_out, every, sha256
        self._saved: str | None = None
        self._measured_at = 0

    def state_dict(self) -> dict[str, Any]:
        return {"data": self.sha256}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._saved = str(state["data"])

    def on_start(self, learner: Learner) -> None:
        if self._saved not in (None, self.sha256):
            raise UserError("imitate.data is not the file that this run began with: its SHA-256 is not the one in the "
                            "checkpoint. Name the same file, or begin a new run with this one's policy: wavedash train ... "
                            "init=RUN imitate.data=FILE")
        self._measured_at = learner.steps
        if not learner.ranks.rank:
            log.info("demonstrations: %s samples of %s episodes, of which %s samples are held out; %.1f %% of the actions are "
                     "known", f"{self.samples.count:,}", f"{len(self.samples.first):,}", f"{len(self.held_out):,}",
                     100 * float(self.samples.known.float().mean()))

    def on_change(self, learner: Learner, then: Any) -> None:
        assert learner.config.imitate is not None
        self.every = learner.config.imitate.every

    def on_iteration(self, learner: Learner, report: IterationReport) -> Mapping[str, float] | None:
        due = report.steps // self.every > self._measured_at // self.every or report.steps >= report.total_steps
        if not due or not len(self.held_out) or learner.ranks.rank:
            return None
        self._measured_at = report.steps
        return {f"imitate/held_out_{name.partition('/')[2]}": x
                for name, x in measure(learner.policy, self.samples, self.held_out).items()}


@torch.no_grad()
def measure(policy: ActorCritic, samples: Samples, numbers: Tensor) -> dict[str, float]:
    """Loss, and accuracy or error, over these samples, which are whole episodes one after another."""
    remembers = policy.sequence_length is not None
    first, length = _cut(samples, numbers, EPISODES_AT_ONCE if remembers else STEPS_AT_ONCE, remembers)
    second = ACCURACY if policy.head.num_masked else ERROR
    sums = torch.zeros(3, dtype=torch.float64, device=numbers.device)
    rows = len(first)
    memory = {f"actor.{name}": x for name, x in policy.trunks["actor"].initial_state(rows).items()}
    for step in range(int(length.max())):
        now = numbers[(first + step).clamp(max=len(numbers) - 1)]
        memory = {name: x.masked_fill(samples.begins[now].view(-1, 1, 1), 0.0) for name, x in memory.items()}
        distribution, memory = policy.step_actor(policy.normalize(map_obs(lambda x, now=now: x[now], samples.obs)), memory)
        known = (samples.known[now] & (step < length)).float()
        found = terms(policy.head, distribution, policy.head.stored_action(samples.action[now].float()), known)
        sums += torch.stack(found).sum(-1, dtype=torch.float64)
    means = dict(zip((LOSS, second, SHARE), (sums / len(numbers)).unbind(), strict=True))
    return {name: float(x) for name, x in measured(means).items()}


def _cut(samples: Samples, numbers: Tensor, most: int, whole: bool) -> tuple[Tensor, Tensor]:
    """First place and length of at most so many rows of nearly equal length, which together are all samples. With `whole`,
    each row is whole episodes."""
    count = len(numbers)
    if whole:
        begins = samples.begins[numbers].nonzero().flatten()
        rows = min(most, len(begins))
        wanted = torch.arange(rows, device=numbers.device) * count // rows
        nearest = begins[torch.searchsorted(begins, wanted, right=True) - 1]
        first = nearest[nearest.diff(prepend=nearest.new_tensor([-1])) > 0]
    else:
        rows = min(most, count)
        first = torch.arange(rows, device=numbers.device) * count // rows
    ends = torch.cat([first[1:], first.new_tensor([count])])
    return first, ends - first
