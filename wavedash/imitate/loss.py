"""The loss of imitation: the negative log-likelihood of what was demonstrated, averaged over samples whose action is known.

    discrete:    -log p(action), summed over choices
    continuous:  -log density of the action, in units where its range is [-1, 1]; the deviation is learned with the mean
"""
from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor

from wavedash.imitate.playback import ACTION, KNOWN, Demonstrated, Playback
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.distributions import Categorical, Distribution, MultiCategorical
from wavedash.ppo.experience import Batch
from wavedash.ppo.loss import Loss

LOSS, ACCURACY, ERROR, SHARE = "imitate/loss", "imitate/accuracy", "imitate/error", "imitate/known"


class ImitationLoss(Loss):
    """Learns what was demonstrated. Only the actor is trained.

    `imitate/accuracy` is the share of discrete choices in which the likeliest action is the demonstrated one. `imitate/error`
    is the root of the mean squared error of the likeliest continuous action, in units where the range is [-1, 1].
    `imitate/known` is the share of samples whose action is known."""

    autograd = True
    values = explores = False

    def __init__(self, playback: Playback, discrete: bool) -> None:
        self.labeller: Demonstrated = Demonstrated(playback)
        self.terms = (LOSS, ACCURACY if discrete else ERROR, SHARE)

    def observed(self, policy: ActorCritic) -> Collection[str]:
        return set(policy.trunks["actor"].encoders.keys)

    def metrics(self, means: dict[str, Tensor]) -> dict[str, Tensor]:
        return {**means, **measured(means)}

    def add_gradient(self, policy: ActorCritic, batch: Batch, scale: Tensor | None) -> tuple[Tensor, ...]:
        weight, known = batch.flat.weight, batch.labels[KNOWN].reshape(-1)
        action = policy.head.stored_action(batch.labels[ACTION])
        with torch.enable_grad():
            distribution = policy.forward_actor(batch.obs, batch.memory, batch.fresh)
            log_prob = distribution.log_prob(action).reshape(-1)
        gradient = -weight * known
        torch.autograd.backward([log_prob], [gradient if scale is None else gradient * scale])
        return terms(policy.head, distribution, action, known)


@torch.no_grad()
def terms(head: Any, distribution: Distribution, action: Tensor, known: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The terms of each step, [B] each: loss, accuracy or squared error, and 1; all of them 0 where the action is not known.
    `action` as it is stored, `known` [B]."""
    loss = -distribution.log_prob(action).reshape(-1)
    return loss * known, _measure(head, distribution, action).reshape(-1) * known, known


def measured(means: dict[str, Tensor]) -> dict[str, Tensor]:
    """The metrics of means over all samples: loss, accuracy and error over those whose action is known."""
    share = means[SHARE].clamp(min=1e-12)
    found = {name: means[name] / share for name in (LOSS, ACCURACY, ERROR) if name in means}
    if ERROR in found:
        found[ERROR] = found[ERROR].sqrt()
    return found


def _measure(head: Any, distribution: Distribution, action: Tensor) -> Tensor:
    """The second term of every step."""
    if isinstance(distribution, Categorical):
        return (distribution.mode() == action).float()
    if isinstance(distribution, MultiCategorical):
        return (distribution.mode() == action).float().mean(-1)
    bounds = head.unit_bounds
    return (torch.clamp(head.unit(distribution.mode()), *bounds) - torch.clamp(head.unit(action), *bounds)).square().mean(-1)
