"""The PPO-clip loss (Schulman et al. 2017) of one minibatch, as weighted means over its valid samples."""
from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from wavedash.policy.actor_critic import Evaluation


class LossTerms(NamedTuple):
    """Per-sample terms; each is averaged with the minibatch's weights, which sum to 1 over valid samples."""

    policy: Tensor
    value: Tensor
    entropy: Tensor
    kl: Tensor
    clipped: Tensor


def ppo_loss(
    new: Evaluation,
    log_prob: Tensor,
    value: Tensor,
    advantage: Tensor,
    returns: Tensor,
    clip_range: float,
    value_clip: float | None,
) -> LossTerms:
    """`new` from the current weights; the other tensors are stored data of the rollout, all of one shape."""
    log_ratio = new.log_prob - log_prob
    ratio = log_ratio.exp()
    # min(ratio * A, clip(ratio, 1 - eps, 1 + eps) * A) = min(ratio * A, A + eps * |A|): one bound, on the side that A pulls to.
    bound = advantage + clip_range * advantage.abs()
    objective = ratio * advantage
    outside = objective > bound
    policy = -torch.where(outside, bound, objective)

    value_loss = (new.value - returns).square()
    if value_clip is not None:
        near = value + (new.value - value).clamp(-value_clip, value_clip)
        value_loss = torch.max(value_loss, (near - returns).square())

    with torch.no_grad():
        # Schulman's k3 estimator of KL(old || new): unbiased, never negative (joschu.net/blog/kl-approx.html).
        kl = (ratio - 1) - log_ratio
        clipped = ((ratio - 1).abs() > clip_range).float()
    return LossTerms(policy, value_loss, new.entropy, kl, clipped)
