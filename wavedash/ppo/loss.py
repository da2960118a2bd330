"""What an update minimises. PPO's loss is in `ppo_loss.py`; imitation, distillation or a loss of one's own take its place.

The update draws minibatches, splits them, runs in low precision, captures CUDA graphs and adds gradients over processes. It
does so in the same way whatever the loss is: all that it asks of one is in this file.
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
    """A sum over samples, each with its weight. A subclass names its terms and adds its gradient."""

    terms: tuple[str, ...] = ()
    """What is measured of every sample, by the names of the metrics: `loss/imitation`. `policy/entropy` and `policy/kl` have a
    meaning elsewhere: the first is also reported as a share of the largest entropy, the second steers `ppo.target_kl` and the
    schedule of kind `kl`."""
    autograd = False
    """Whether `add_gradient` needs torch's autograd. `Policy.evaluate` does not need it where the policy has a backward pass of
    its own, and the update then saves what autograd would cost."""
    coefficients: Mapping[str, Tensor] = MappingProxyType({})
    """Numbers that may move over a run, by their names in `PPOConfig`; tensors, because a captured CUDA graph reads them."""

    def configure(self, config: PPOConfig) -> None:
        """The options have changed. Those in `coefficients` are filled in by the learner."""

    def labels(self, buffer: RolloutBuffer) -> Mapping[str, Tensor]:
        """More to learn from than the rollouts hold, such as what a teacher would have done: tensors [filled * T * N, ...] in
        the order of `buffer.samples`. Asked for once at the beginning of every update; minibatches hold them as
        `batch.labels`."""
        return {}

    def add_gradient(self, policy: ActorCritic, batch: Batch, scale: Tensor | None) -> Sequence[Tensor]:
        """Adds the gradient of the loss of these samples to the `grad` of the policy's parameters, and returns the terms of
        each sample, [samples] each. The loss is the sum of weight times loss over samples, with `batch.stored.weight`: a
        minibatch may come in several pieces, whose gradients are added. `scale` (fp16): a factor for the gradient."""
        raise NotImplementedError
