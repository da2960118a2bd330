"""The loss of distillation: how far the student's actions are from those of its teacher, who has labelled every step.

    continuous:  mean over dimensions of (student - teacher)^2, of likeliest actions in units where the range is [-1, 1]
    discrete:    KL(teacher || student) = cross-entropy - entropy of the teacher, summed over choices; only the cross-entropy
                 depends on the student, so the gradient is its own, and a student that does the same has a loss of 0

Both heads may be of any kind. A squashed action is compared after it was squashed. The teacher's action is clipped as the
environment clips it; the student's is not, because a clipped action has no gradient: it learns to be inside of the bounds.
"""
from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor

from wavedash.config import DistillConfig, PPOConfig
from wavedash.distill.teacher import LABEL, Teacher, likeliest
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.distributions import Categorical, Distribution, MultiCategorical
from wavedash.ppo.experience import Batch
from wavedash.ppo.loss import Loss
from wavedash.ppo.ppo_loss import value_loss

LOSS, AGREEMENT, ERROR, SQUARE = "distill/loss", "distill/agreement", "distill/error", "distill/square"


class DistillLoss(Loss):
    """Learns from the labels of a teacher, and trains the critic if that is asked for.

    `distill/agreement` is the share of discrete choices in which the likeliest actions of both are the same. `distill/error` is
    the root of the mean squared error of continuous actions over the root of the mean square of the teacher's: 1 is what a
    student has that always answers 0."""

    autograd = True

    def __init__(self, teacher: Teacher, options: DistillConfig, ppo: PPOConfig) -> None:
        self.labeller, self.options, self.ppo = teacher, options, ppo
        self.values, self.explores = options.critic, options.act == "sample"
        self.discrete = teacher.policy.head.num_masked > 0
        measured = (LOSS, AGREEMENT) if self.discrete else (LOSS, SQUARE)
        self.terms = (*measured, "loss/value") if self.values else measured

    def observed(self, policy: ActorCritic) -> Collection[str]:
        trunks = policy.trunks.values() if self.values else [policy.trunks["actor"]]
        return {key for trunk in trunks for key in trunk.encoders.keys}

    def configure(self, config: PPOConfig) -> None:
        self.ppo = config

    def metrics(self, means: dict[str, Tensor]) -> dict[str, Tensor]:
        if self.discrete:
            return means
        error = (means[LOSS] / means[SQUARE].clamp(min=1e-12)).sqrt()
        return {ERROR if name == SQUARE else name: error if name == SQUARE else x for name, x in means.items()}

    def add_gradient(self, policy: ActorCritic, batch: Batch, scale: Tensor | None) -> tuple[Tensor, ...]:
        flat, label = batch.flat, batch.labels[LABEL]
        with torch.enable_grad():
            distribution, value = self._evaluated(policy, batch)
            distance = distance_to(label, policy.head, distribution).reshape(-1)
        outputs, gradients = [distance], [flat.weight]
        terms = [distance.detach(), self._measure(label, distribution).reshape(-1)]
        if value is not None:
            error, value_gradient = value_loss(value.detach(), flat.value, flat.returns, self.ppo.value_clip)
            outputs.append(value)
            gradients.append((self.ppo.value_coef * flat.weight) * value_gradient)
            terms.append(error)
        torch.autograd.backward(outputs, gradients if scale is None else [x * scale for x in gradients])
        return tuple(terms)

    def _evaluated(self, policy: ActorCritic, batch: Batch) -> tuple[Distribution, Tensor | None]:
        """Returns the action distribution and, if the critic is trained, the value of each step, flat."""
        if not self.values:
            return policy.forward_actor(batch.obs, batch.memory, batch.fresh), None
        distribution, value = policy(batch.obs, batch.memory, batch.fresh)
        return distribution, value.reshape(-1)

    @torch.no_grad()
    def _measure(self, label: Tensor, distribution: Distribution) -> Tensor:
        """Returns the second term of every sample."""
        if not self.discrete:
            return label.square().mean(-1)
        same = (label.argmax(-1) == distribution.mode()).float()
        return same.mean(-1) if isinstance(distribution, MultiCategorical) else same


def distance_to(label: Tensor, head: Any, distribution: Distribution) -> Tensor:
    """Returns the distance of each step from its label, [...]. It has a gradient."""
    if isinstance(distribution, Categorical):
        return _divergence(label, distribution.log_probs)
    if isinstance(distribution, MultiCategorical):
        return _divergence(label, distribution.choices.log_probs).sum(-1)
    return (likeliest(head, distribution) - label).square().mean(-1)


def _divergence(probs: Tensor, log_probs: Tensor) -> Tensor:
    """Returns KL(probs || exp(log_probs)). A forbidden action has probability 0, and 0 log 0 is 0."""
    return (torch.xlogy(probs, probs) - probs * log_probs).sum(-1)
