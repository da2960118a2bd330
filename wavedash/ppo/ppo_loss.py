"""Computes the PPO-clip loss (Schulman et al. 2017) of one minibatch, and its gradient with respect to the policy's outputs.

    loss = sum over samples of weight * (policy + value_coef * value - entropy_coef * entropy)

The weights sum to 1 over the valid samples. The loss reaches the networks only through log-probability, entropy and value of
each sample; these three gradients are short enough to write down, and the policy backpropagates them to its weights.
"""
from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from wavedash.config import PPOConfig
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.evaluation import Evaluation, OutputGradients
from wavedash.ppo.experience import Batch, Stored
from wavedash.ppo.loss import ENTROPY, KL, Loss


class Coefficients(NamedTuple):
    """Numbers of the loss that may change over a run, as tensors: a captured CUDA graph reads their current values."""

    clip_range: Tensor
    entropy_coef: Tensor

    @classmethod
    def of(cls, config: PPOConfig, device: torch.device | str = "cpu") -> Coefficients:
        """Returns the values at the beginning of a run."""
        return cls(*(torch.tensor(getattr(config, name), device=device) for name in cls._fields))


class LossTerms(NamedTuple):
    """The terms of the loss, of every sample."""

    policy: Tensor
    value: Tensor
    entropy: Tensor
    kl: Tensor
    clipped: Tensor


TERMS = LossTerms._fields
METRICS = {"policy": "loss/policy", "value": "loss/value", "entropy": ENTROPY, "kl": KL, "clipped": "policy/clip_fraction"}
"""The metric under which the mean of each term is reported"""


class PPOLoss(Loss):
    """Adds the clipped surrogate objective, the squared error of the value and an entropy bonus."""

    terms = tuple(METRICS[name] for name in TERMS)

    def __init__(self, config: PPOConfig, device: torch.device | str = "cpu") -> None:
        self.config = config
        self._current = Coefficients.of(config, device)
        self.coefficients = self._current._asdict()

    def configure(self, config: PPOConfig) -> None:
        self.config = config

    def add_gradient(self, policy: ActorCritic, batch: Batch, scale: Tensor | None) -> tuple[Tensor, ...]:
        new = policy.evaluate(batch.obs, batch.action, batch.memory, batch.fresh)
        terms, gradients = ppo_loss(new, batch.flat, self.config, self._current)
        new.backward(gradients.scaled(scale))
        return terms


@torch.no_grad()
def ppo_loss(
    new: Evaluation, stored: Stored, config: PPOConfig, coefficients: Coefficients
) -> tuple[LossTerms, OutputGradients]:
    """Returns the terms of every sample, and the gradient of the loss with respect to the outputs of the policy. `new` comes
    from the current weights, `stored` from the rollout. `coefficients` override the options of the same names."""
    log_prob, value, advantage, returns, weight = stored
    log_ratio = new.log_prob - log_prob
    ratio = log_ratio.exp()
    # min(ratio * A, clip(ratio, 1 - eps, 1 + eps) * A) = min(ratio * A, A + eps * |A|): one bound covers both signs of A.
    bound = torch.addcmul(advantage, advantage.abs(), coefficients.clip_range)
    objective = ratio * advantage
    beyond = objective > bound  # clipped: no gradient

    value_error, value_gradient = value_loss(new.value, value, returns, config.value_clip)
    drift = ratio - 1.0
    terms = LossTerms(
        policy=-torch.where(beyond, bound, objective),
        value=value_error,
        entropy=new.entropy,
        kl=drift - log_ratio,  # Schulman's k3 estimator of KL(old || new): unbiased, never negative
        clipped=(drift.abs() > coefficients.clip_range).float(),
    )
    gradients = OutputGradients(
        log_prob=(weight * objective).neg_().masked_fill_(beyond, 0.0),
        entropy=-coefficients.entropy_coef * weight,
        value=(config.value_coef * weight) * value_gradient,
    )
    return terms, gradients


@torch.no_grad()
def value_loss(new: Tensor, old: Tensor, returns: Tensor, clip: float | None) -> tuple[Tensor, Tensor]:
    """Returns the squared error of new values, of every sample, and its derivative. With `clip`, a value that has moved further
    than that from the old one counts as if it had moved so far, where that makes the loss larger."""
    error = new - returns
    loss, gradient = error.square(), 2.0 * error
    if clip is not None:
        move = new - old
        clipped_error = old + move.clamp(-clip, clip) - returns
        # The larger of both losses counts; a clipped value has no gradient.
        clipped_loss = clipped_error.square()
        clipped_gradient = 2.0 * clipped_error.masked_fill(move.abs() > clip, 0.0)
        gradient = torch.where(clipped_loss > loss, clipped_gradient, gradient)
        loss = torch.max(clipped_loss, loss)
    return loss, gradient
