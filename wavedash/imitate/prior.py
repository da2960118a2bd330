"""The prior: the policy that a run of PPO began with, near to which a term of the loss holds it, less and less.

    loss = PPO's + coef(step) * KL(prior || policy)

The prior is frozen. It labels every step of a rollout with its action distribution, and remembers by itself. When the weight
has fallen to 0, neither the prior nor the term is computed any more, and the run is PPO's alone, bit for bit.
"""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from wavedash.config import PPOConfig, PriorConfig, RunConfig
from wavedash.distill.teacher import PolicyLabeller, label_shape
from wavedash.envs.obs import Obs
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.divergence import divergence, numbers_of
from wavedash.policy.memory import State
from wavedash.ppo.experience import Batch
from wavedash.ppo.listener import IterationReport
from wavedash.ppo.ppo_loss import PPOLoss
from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.runs.policy_copy import FoundPolicy, PolicyCopy, find_policy

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

FOLDER = LABEL = "prior"
DIVERGENCE, WEIGHT = "prior/kl", "prior/coef"


def weight_at(options: PriorConfig, steps: int) -> float:
    """The weight of the term after so many steps."""
    return options.coef * max(0.0, 1.0 - steps / options.fade)


class Prior(PolicyLabeller):
    """Labels each step with the numbers of its action distribution."""

    def __init__(self, policy: ActorCritic) -> None:
        super().__init__(policy)
        shape = label_shape(policy.action_space)
        self.shapes = {LABEL: shape if policy.head.num_masked else (2 * shape[0],)}
        self.asked = True
        """Whether it is still asked; otherwise labels are zeros, and cost nothing"""

    def label(self, obs: Obs, memory: State) -> tuple[Mapping[str, Tensor], State]:
        if not self.asked:
            rows = len(next(iter(obs.values())) if isinstance(obs, dict) else obs)
            device = next(self.policy.parameters()).device
            return {LABEL: torch.zeros((), device=device).expand(rows, *self.shapes[LABEL])}, memory
        distribution, after = self.distribution(obs, memory)
        return {LABEL: numbers_of(distribution)}, after


class PriorLoss(PPOLoss):
    """PPO's loss and the divergence of the policy from a prior."""

    autograd = True
    terms = (*PPOLoss.terms, DIVERGENCE)

    def __init__(self, prior: Prior, config: PPOConfig, device: torch.device | str = "cpu") -> None:
        super().__init__(config, device)
        self.labeller: Prior = prior
        self.weight = torch.zeros((), device=device)
        """That of the term, which captured graphs read"""

    def metrics(self, means: dict[str, Tensor]) -> dict[str, Tensor]:
        return means if self.labeller.asked else {name: x for name, x in means.items() if name != DIVERGENCE}

    def add_gradient(self, policy: ActorCritic, batch: Batch, scale: Tensor | None) -> tuple[Tensor, ...]:
        terms = super().add_gradient(policy, batch, scale)
        if not self.labeller.asked:
            return *terms, torch.zeros_like(terms[0])
        with torch.enable_grad():
            distribution = policy.forward_actor(batch.obs, batch.memory, batch.fresh)
            away = divergence(batch.labels[LABEL], distribution).reshape(-1)
        gradient = self.weight * batch.flat.weight
        torch.autograd.backward([away], [gradient if scale is None else gradient * scale])
        return *terms, away.detach()


class FadingPrior(PolicyCopy):
    """Keeps the prior in the folder of the run, and lets its weight fall."""

    saved_as = folder = FOLDER
    live = ("prior.coef", "prior.fade")

    def __init__(self, found: FoundPolicy, loss: PriorLoss) -> None:
        super().__init__(found)
        self.loss = loss

    def on_start(self, learner: Learner) -> None:
        super().on_start(learner)
        self._weigh(learner)

    def on_change(self, learner: Learner, then: RunConfig) -> None:
        self._weigh(learner)

    def on_iteration(self, learner: Learner, report: IterationReport) -> Mapping[str, float]:
        return {WEIGHT: self._weigh(learner)}

    def _weigh(self, learner: Learner) -> float:
        """Sets the weight for the next iteration, and returns it."""
        assert learner.config.prior is not None
        weight = weight_at(learner.config.prior, learner.steps)
        self.loss.weight.fill_(weight)
        if self.loss.labeller.asked != (weight > 0.0):
            self.loss.labeller.asked = weight > 0.0
            learner.forget_graphs()
            learner.updater.forget_graphs()
        return weight


def find_prior(config: RunConfig, run: Path | None = None, ranks: Ranks = ALONE, trust: bool = False) -> FoundPolicy | None:
    """Reads the policy that a run with a prior began with; in a run that is resumed, the copy in its folder `run`. The first
    rank reads it for all. RunError or CheckpointError: it cannot be read. None: the run has no prior."""
    if config.prior is None or config.init is None:
        return None
    copied = None if run is None else run / FOLDER
    return ranks.shared(find_policy(config, "init", config.init, copied, trust) if ranks.rank == 0 else None)
