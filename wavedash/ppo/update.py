"""The update: epochs of shuffled minibatches over the stored experience.

Nothing here waits for the device. A gradient that is not finite, and everything after the early stop, is skipped by the
optimiser's own kernel; figures are written to a table on the device and read by the learner when the iteration is over.
"""
from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from wavedash.config import PPOConfig
from wavedash.envs.obs import Obs, map_obs
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.loss import LossTerms, ppo_loss
from wavedash.ppo.optimizer import FlatAdamW
from wavedash.ppo.rollout import RolloutBuffer
from wavedash.seeding import stream_seed

FIGURES = (*LossTerms._fields, "grad_norm", "applied")


class Batch(NamedTuple):
    """Samples to learn from. The numbers of a sample are side by side, so that a minibatch takes three gathers."""

    obs: Obs
    action: Tensor
    numbers: Tensor
    """[B, 5]: log_prob, value, advantage, returns, weight"""

    def take(self, index: Tensor) -> Batch:
        return Batch(map_obs(lambda x: x[index], self.obs), self.action[index], self.numbers[index])

    def pieces(self, count: int) -> list[Batch]:
        """Nearly equal parts, as views."""
        if count == 1:
            return [self]
        bounds = [len(self.numbers) * k // count for k in range(count + 1)]
        parts = [slice(a, b) for a, b in pairwise(bounds) if a < b]
        return [Batch(map_obs(lambda x, part=part: x[part], self.obs), self.action[part], self.numbers[part]) for part in parts]


class Updater:
    """Turns rollouts into better weights."""

    def __init__(self, policy: ActorCritic, config: PPOConfig, seed: int):
        self.policy, self.config = policy, config
        critic_rate = config.critic_learning_rate or config.learning_rate
        groups: dict[str, tuple[Iterable[nn.Parameter], float]] = {"policy": (policy.parameters(), config.learning_rate)}
        if critic_rate != config.learning_rate:
            groups = {
                "actor": (policy.actor.parameters(), config.learning_rate),
                "critic": (policy.critic.parameters(), critic_rate),
            }
        self.optimizer = FlatAdamW(groups, config.adam_betas, config.adam_eps, config.weight_decay, config.max_grad_norm)
        device = self.optimizer.parameters.device
        self.generator = torch.Generator(device).manual_seed(stream_seed(seed, "minibatches"))

    @torch.no_grad()
    def update(self, buffer: RolloutBuffer) -> Tensor:
        """All epochs over the buffer; returns a table [gradient steps, FIGURES] on the device."""
        config = self.config
        batch = self._batch(buffer)
        samples = len(batch.numbers)
        minibatches = -(-samples // config.minibatch_size)
        stopped = torch.zeros((), dtype=torch.bool, device=batch.numbers.device)
        table = []
        for _ in range(config.epochs):
            order = torch.randperm(samples, generator=self.generator, device=stopped.device)
            # Even pieces: no sample is dropped and none is left over for a tiny last minibatch.
            for index in order.tensor_split(minibatches):
                means, norm, applied, stopped = self._gradient_step(batch.take(index), stopped)
                table += [means, norm, applied]
        return torch.cat([x.float().reshape(-1) for x in table]).view(-1, len(FIGURES))

    def _batch(self, buffer: RolloutBuffer) -> Batch:
        samples = buffer.samples
        weight = samples.active.float()
        advantage = samples.advantage
        if self.config.normalize_advantage == "batch":
            advantage = normalized(advantage, weight)
        numbers = torch.stack([samples.log_prob, samples.value, advantage, samples.returns, weight], -1)
        return Batch(samples.obs, samples.action, numbers)

    def _gradient_step(self, batch: Batch, stopped: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """One minibatch: loss, gradient, step. Returns its mean loss terms, gradient norm, whether it was applied, and
        whether the update is over."""
        config, numbers = self.config, batch.numbers
        weight = numbers[:, 4]
        if config.normalize_advantage == "minibatch":
            numbers[:, 2] = normalized(numbers[:, 2], weight)
        weight /= weight.sum().clamp_(min=1.0)  # means over valid samples only
        self.optimizer.zero_grad()
        means = numbers.new_zeros(len(LossTerms._fields))
        for piece in batch.pieces(config.accumulate):
            log_prob, value, advantage, returns, weight = piece.numbers.unbind(-1)
            new = self.policy.evaluate(piece.obs, piece.action)
            terms, slopes = ppo_loss(new, log_prob, value, advantage, returns, weight, config)
            new.pull_back(slopes)
            means += weight @ torch.stack(terms, -1)
        if config.target_kl is not None:
            stopped = stopped | (means[LossTerms._fields.index("kl")] > config.target_kl)
        norm, applied = self.optimizer.step(skip=stopped if config.target_kl is not None else None)
        return means, norm, applied, stopped

    def state_dict(self) -> dict[str, Tensor]:
        return {**self.optimizer.state_dict(), "minibatches": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.optimizer.load_state_dict(state)
        self.generator.set_state(state["minibatches"])


def normalized(advantage: Tensor, weight: Tensor) -> Tensor:
    """Mean 0 and deviation 1 over the samples that count."""
    weight = weight / weight.sum().clamp(min=1.0)
    centred = advantage - (weight * advantage).sum()
    return centred / ((weight * centred.square()).sum().sqrt() + 1e-8)
