"""A loss is what an update minimises. PPO's is in `ppo_loss.py`; imitation, distillation or one's own can take its place.

The update draws minibatches, splits them, runs in low precision, captures CUDA graphs and adds gradients over processes in the
same way for every loss. A loss also says what rollouts must hold for it: which keys of the observations, whether values and
advantages, and what a labeller adds to each step while it is collected. This file holds the whole interface between them.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from torch import Tensor

from wavedash.config import PPOConfig
from wavedash.envs.obs import Obs
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.memory import State

if TYPE_CHECKING:
    from wavedash.ppo.experience import Batch
    from wavedash.ppo.rollout import RolloutBuffer

KL = "policy/kl"
ENTROPY = "policy/entropy"


class Labeller:
    """Labels every step while it is collected, such as by what a teacher would do there. It may remember: rows carry its memory
    from step to step, it is zeroed where that of the policy is, and it is part of a checkpoint."""

    shapes: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    """The shape of each label of one row, by name. Labels are float32."""

    def initial_memory(self, rows: int) -> State:
        """Returns its memory of so many rows [N, layers, size] by part, where an episode begins."""
        return {}

    def label(self, obs: Obs, memory: State) -> tuple[Mapping[str, Tensor], State]:
        """Returns the labels [N, ...] of these observations, which are as the environment gave them, and the memory after them.
        It is captured in a CUDA graph with the collection. Those of inactive rows may be anything."""
        raise NotImplementedError


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

    labeller: Labeller | None = None
    """What labels the steps of rollouts; minibatches hold the labels as `batch.labels`"""
    values = True
    """Whether it reads values, advantages or returns. Where it does not, collection leaves the critic out, no advantage is
    estimated, and `batch.stored` holds zeros."""
    explores = True
    """Whether the policy samples its actions while rollouts are collected; otherwise it takes the likeliest ones"""

    def observed(self, policy: ActorCritic) -> Collection[str] | None:
        """Returns the keys of a dictionary observation that rollouts must hold; None: all. An action mask is always held."""
        return None

    def configure(self, config: PPOConfig) -> None:
        """Takes over changed options. The learner fills in those in `coefficients`."""

    def labels(self, buffer: RolloutBuffer) -> Mapping[str, Tensor]:
        """Returns more to learn from than the rollouts hold, where it follows from what they hold: tensors
        [filled * T * N, ...] in the order of `buffer.samples`. It is called once at the beginning of every update; minibatches
        hold the result as `batch.labels`, beside the labels of a `labeller`."""
        return {}

    def metrics(self, means: dict[str, Tensor]) -> dict[str, Tensor]:
        """Returns what is reported of an update, given the mean of each term and of the update's own numbers, on the device:
        the same, unless a metric is a ratio of terms, say."""
        return means

    def add_gradient(self, policy: ActorCritic, batch: Batch, scale: Tensor | None) -> Sequence[Tensor]:
        """Adds the gradient of the loss of these samples to the `grad` of the policy's parameters, and returns the terms of
        each sample, [samples] each. The loss is the sum over samples of `batch.stored.weight` times their loss: a minibatch
        may come in several pieces, whose gradients are added. `scale` (fp16) is a factor for the gradient."""
        raise NotImplementedError
