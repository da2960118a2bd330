"""A loss is what an update minimises. PPO's is in `ppo_loss.py`; imitation, distillation or one's own can take its place.

The update draws minibatches, splits them, runs in low precision, captures CUDA graphs and adds gradients over processes in the
same way for every loss. This file holds the whole interface between them.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from torch import Tensor

from wavedash.config import PPOConfig
from wavedash.policy.actor_critic import ActorCritic

if TYPE_CHECKING:
    from wavedash.ppo.experience import Batch
    from wavedash.ppo.rollout import RolloutBuffer

KL = "policy/kl"
ENTROPY = "policy/entropy"


class Loss:
    """A weighted sum over samples. A subclass names its terms and adds its gradient."""

    terms: tuple[str, ...] = ()
    """Names of the metrics that are measured for every sample, such as `loss/imitation`. Two names have a meaning elsewhere:
    `policy/entropy` is also reported as a share of the largest entropy, and `policy/kl` is what `ppo.target_kl` and the
    schedule of kind `kl` read."""
    autograd = False
    """Whether `add_gradient` needs torch's autograd. `ActorCritic.evaluate` does not need it where the policy has a backward
    pass of its own, and the update then saves what autograd would cost."""
    coefficients: Mapping[str, Tensor] = MappingProxyType({})
    """Numbers that may change over a run, by their names in `PPOConfig`; tensors, because a captured CUDA graph reads them."""

    def configure(self, config: PPOConfig) -> None:
        """Takes over changed options. The learner fills in those in `coefficients`."""

    def labels(self, buffer: RolloutBuffer) -> Mapping[str, Tensor]:
        """Returns more to learn from than the rollouts hold, such as what a teacher would have done: tensors
        [filled * T * N, ...] in the order of `buffer.samples`. It is called once at the beginning of every update; minibatches
        hold the result as `batch.labels`."""
        return {}

    def add_gradient(self, policy: ActorCritic, batch: Batch, scale: Tensor | None) -> Sequence[Tensor]:
        """Adds the gradient of the loss of these samples to the `grad` of the policy's parameters, and returns the terms of
        each sample, [samples] each. The loss is the sum over samples of `batch.stored.weight` times their loss: a minibatch
        may come in several pieces, whose gradients are added. `scale` (fp16) is a factor for the gradient."""
        raise NotImplementedError
