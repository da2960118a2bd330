"""Experience is what an update learns from: everything in the rollout buffer, and the minibatches drawn from it."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from wavedash.envs.obs import Obs, map_obs
from wavedash.policy.memory import State
from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.ppo.rollout import RolloutBuffer


class Stored(NamedTuple):
    """What the rollouts hold about each step, besides observation and action. All tensors have one shape."""

    log_prob: Tensor
    """The log-probability of the action when it was taken"""
    value: Tensor
    """The estimate of the critic when the action was taken"""
    advantage: Tensor
    returns: Tensor
    weight: Tensor
    """1 for a transition and 0 for any other step; in a minibatch, divided by the number of transitions"""


class Batch(NamedTuple):
    """Steps to learn from: [B, ...], or sequences [L, B, ...] where the policy has memory."""

    obs: Obs
    action: Tensor
    numbers: Tensor
    """[..., 5]: the columns of `Stored`, side by side, so that one gather takes them all"""
    memory: State
    """[B, ...] before the first step of each sequence"""
    fresh: Tensor | None
    """[L, B] where an episode begins"""
    labels: dict[str, Tensor]
    """What the loss adds to each step: the labels of its labeller, and `Loss.labels`"""

    @property
    def stored(self) -> Stored:
        """The numbers by name, as views."""
        return Stored(*self.numbers.unbind(-1))

    @property
    def flat(self) -> Stored:
        """The numbers by name, [B] or [L * B]: the shape in which `ActorCritic.evaluate` returns its results."""
        return Stored(*self.numbers.flatten(0, -2).unbind(-1))

    @property
    def size(self) -> int:
        """The number of samples or sequences."""
        return self.numbers.shape[self._sample_axis]

    @property
    def _sample_axis(self) -> int:
        return self.numbers.dim() - 2

    def parts(self, count: int) -> list[Batch]:
        """Splits the batch into `count` nearly equal parts, which are views."""
        return self.between([self.size * k // count for k in range(count + 1)])

    def between(self, bounds: Sequence[int]) -> list[Batch]:
        """Splits the batch at these numbers of samples or sequences; the parts are views."""
        if len(bounds) == 2:
            return [self]
        return [self._slice(a, b - a) for a, b in pairwise(bounds) if a < b]

    def _slice(self, start: int, length: int) -> Batch:
        axis = self._sample_axis

        def part(x: Tensor) -> Tensor:
            return x.narrow(axis, start, length)

        memory = {name: x[start : start + length] for name, x in self.memory.items()}
        labels = {name: part(x) for name, x in self.labels.items()}
        fresh = None if self.fresh is None else part(self.fresh)
        return Batch(map_obs(part, self.obs), part(self.action), part(self.numbers), memory, fresh, labels)


class Experience:
    """Everything in the buffer as one batch to draw from: single steps, or whole sequences where the policy has memory.

    Its tensors keep their addresses while the number of rollouts in the buffer stays the same; `refresh` updates them.
    """

    def __init__(self, buffer: RolloutBuffer, normalize_advantage: bool, ranks: Ranks,
                 labels: Callable[[RolloutBuffer], Mapping[str, Tensor]] = lambda buffer: {}):
        """`labels` is `Loss.labels` of the loss in use."""
        self.buffer, self.filled, self.normalize_advantage, self.ranks = buffer, buffer.filled, normalize_advantage, ranks
        self.samples, self.rows, self.length = buffer.samples, buffer.rows, buffer.sequence_length
        numbers = torch.empty(*self.samples.value.shape, len(Stored._fields), device=self.samples.value.device)
        fresh = None if self.length is None else torch.empty_like(self.samples.active)
        self.all = Batch(self.samples.obs, self.samples.action, numbers, self.samples.memory, fresh, dict(self.samples.labels))
        self._labels = labels
        self.size = len(numbers) // (self.length or 1)
        """The number of steps, or of sequences"""

    def refresh(self) -> None:
        """Computes anew what depends on the latest rollouts: normalised advantages, weights, labels."""
        samples = self.samples
        weight = samples.active.float()
        advantage = normalized(samples.advantage, weight, self.ranks) if self.normalize_advantage else samples.advantage
        stored = Stored(samples.log_prob, samples.value, advantage, samples.returns, weight)
        torch.stack(stored, -1, out=self.all.numbers)
        self.all.numbers.masked_fill_(~samples.active.unsqueeze(-1), 0.0)  # inactive rows may hold NaN
        if self.all.fresh is not None:
            self.all.fresh.copy_(self.buffer.fresh())
        for name, x in self._labels(self.buffer).items():
            if name in self.all.labels:
                self.all.labels[name].copy_(x)
            else:
                self.all.labels[name] = x.clone()  # a captured CUDA graph reads it from here in later updates too

    def kept(self, share: float) -> int:
        """How many steps or sequences that share of them is."""
        return self.size if share == 1.0 else max(1, round(share * self.size))

    def largest_advantages(self, share: float) -> Tensor | None:
        """Returns the numbers of that share of all steps or sequences whose advantages are furthest from 0, in no order. None
        stands for all. A sequence counts by its largest advantage; inactive steps come last.

        How many they are follows from the share alone, so that minibatches keep their sizes and no host sync is needed.
        """
        if share == 1.0:
            return None
        stored = self.all.stored
        size = stored.advantage.abs().masked_fill_(stored.weight == 0, -1.0)
        if self.length is not None:
            size = size.view(-1, self.length, self.rows).amax(1).view(-1)
        return size.topk(self.kept(share), sorted=False).indices

    def take(self, index: Tensor) -> Batch:
        """Returns the steps or sequences numbered `index`."""
        every = self.all
        if self.length is None:
            return Batch(map_obs(lambda x: _chosen(x, index), every.obs), _chosen(every.action, index),
                         _chosen(every.numbers, index), {}, None, {name: _chosen(x, index) for name, x in every.labels.items()})
        # Storage is time-major: steps of one row are `rows` apart. Sequence s is number s // rows in time, of row s % rows.
        first = index + index.div(self.rows, rounding_mode="floor") * (self.length - 1) * self.rows
        steps = first + torch.arange(self.length, device=index.device).unsqueeze(-1) * self.rows  # [L, B]
        memory = {name: x[index] for name, x in every.memory.items()}
        labels = {name: x[steps] for name, x in every.labels.items()}
        assert every.fresh is not None
        obs = map_obs(lambda x: x[steps], every.obs)
        return Batch(obs, every.action[steps], every.numbers[steps], memory, every.fresh[steps], labels)


def _chosen(x: Tensor, index: Tensor) -> Tensor:
    """Returns x[index]. On a CPU, `index_select` copies whole rows and is four to ten times faster."""
    return x[index] if x.is_cuda else x.index_select(0, index)


def normalized(advantage: Tensor, weight: Tensor, ranks: Ranks = ALONE) -> Tensor:
    """Shifts and scales to mean 0 and standard deviation 1 over the weighted samples of all ranks."""
    centred = advantage - ranks.mean(advantage, weight)
    return centred / (ranks.mean(centred.square(), weight).sqrt() + 1e-8)
