"""The PPO-clip loss (Schulman et al. 2017) of one minibatch, and its slope in what the policy says.

    loss = sum over samples of weight * (policy + value_coef * value - entropy_coef * entropy)

The weights sum to 1 over the valid samples. The loss reaches the networks only through log-probability, entropy and value of
each sample; these three slopes are short enough to write down, and the policy carries them on (`Evaluation.pull_back`).
"""
from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from wavedash.config import PPOConfig
from wavedash.policy.evaluation import Evaluation, Slopes


class Coefficients(NamedTuple):
    """Numbers of the loss that may move over a run, as tensors: a captured CUDA graph reads what they are now."""

    clip_range: Tensor
    entropy_coef: Tensor

    @classmethod
    def of(cls, config: PPOConfig, device: torch.device | str = "cpu") -> Coefficients:
        """At the beginning of a run."""
        return cls(*(torch.tensor(getattr(config, name), device=device) for name in cls._fields))


class LossTerms(NamedTuple):
    """Of every sample, or averaged over samples."""

    policy: Tensor
    value: Tensor
    entropy: Tensor
    kl: Tensor
    clipped: Tensor


@torch.no_grad()
def ppo_loss(
    new: Evaluation, log_prob: Tensor, value: Tensor, advantage: Tensor, returns: Tensor, weight: Tensor, config: PPOConfig,
    now: Coefficients,
) -> tuple[LossTerms, Slopes]:
    """`new` from the current weights; the other tensors are stored data of the rollout, all of one shape. `now`: what counts
    instead of the configuration's."""
    log_ratio = new.log_prob - log_prob
    ratio = log_ratio.exp()
    # min(ratio * A, clip(ratio, 1 - eps, 1 + eps) * A) = min(ratio * A, A + eps * |A|): one bound, on the side that A pulls to.
    bound = torch.addcmul(advantage, advantage.abs(), now.clip_range)
    objective = ratio * advantage
    beyond = objective > bound  # the policy has moved far enough here: no slope

    error = new.value - returns
    value_loss, value_slope = error.square(), 2.0 * error
    if config.value_clip is not None:
        move = new.value - value
        near_error = value + move.clamp(-config.value_clip, config.value_clip) - returns
        # The worse of the two counts; a value at its limit has no slope.
        near_loss, near_slope = near_error.square(), 2.0 * near_error.masked_fill(move.abs() > config.value_clip, 0.0)
        value_slope = torch.where(near_loss > value_loss, near_slope, value_slope)
        value_loss = torch.max(near_loss, value_loss)

    drift = ratio - 1.0
    terms = LossTerms(
        policy=-torch.where(beyond, bound, objective),
        value=value_loss,
        entropy=new.entropy,
        kl=drift - log_ratio,  # Schulman's k3 estimator of KL(old || new): unbiased, never negative
        clipped=(drift.abs() > now.clip_range).float(),
    )
    slopes = Slopes(
        log_prob=(weight * objective).neg_().masked_fill_(beyond, 0.0),
        entropy=-now.entropy_coef * weight,
        value=(config.value_coef * weight) * value_slope,
    )
    return terms, slopes
