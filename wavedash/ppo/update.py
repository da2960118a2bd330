"""The update: epochs of shuffled minibatches over the stored experience.

Nothing here waits for the device. A gradient that is not finite, and everything after the early stop, is skipped by the
optimiser's own kernel; figures are written to a table on the device and read by the learner when the iteration is over.
"""
from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

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
    targets: Tensor
    """[M, 5]: log_prob, value, advantage, returns, weight"""

    def __getitem__(self, index: Tensor) -> Batch:  # type: ignore[override]
        return Batch(map_obs(lambda x: x[index], self.obs), self.action[index], self.targets[index])


class Updater:
    """Turns rollouts into better weights."""

    def __init__(self, policy: ActorCritic, config: PPOConfig, seed: int):
        self.policy, self.config = policy, config
        critic_rate = config.critic_learning_rate or config.learning_rate
        groups = {"policy": (policy.parameters(), config.learning_rate)}
        if critic_rate != config.learning_rate:
            groups = {
                "actor": (policy.actor.parameters(), config.learning_rate),
                "critic": (policy.critic.parameters(), critic_rate),
            }
        self.optimizer = FlatAdamW(groups, config.adam_betas, config.adam_eps, config.weight_decay, config.max_grad_norm)
        device = self.optimizer.parameters.device
        self.generator = torch.Generator(device).manual_seed(stream_seed(seed, "minibatches"))
        self.coefficients = torch.tensor([1.0, config.value_coef, -config.entropy_coef, 0.0, 0.0], device=device)
        """Of the loss terms, in their order; kl and clipped are only watched."""

    def update(self, buffer: RolloutBuffer) -> Tensor:
        """All epochs over the buffer; returns a table [gradient steps, FIGURES] on the device."""
        config = self.config
        batch = self._batch(buffer)
        samples = len(batch.targets)
        minibatches = -(-samples // config.minibatch_size)
        table = batch.targets.new_empty(config.epochs * minibatches, len(FIGURES))
        stopped = torch.zeros((), dtype=torch.bool, device=table.device)
        rows = iter(table)
        for _ in range(config.epochs):
            order = torch.randperm(samples, generator=self.generator, device=table.device)
            # Even pieces: no sample is dropped and none is left over for a tiny last minibatch.
            for index in order.tensor_split(minibatches):
                stopped = self._gradient_step(batch[index], stopped, next(rows))
        return table

    def _batch(self, buffer: RolloutBuffer) -> Batch:
        samples = buffer.samples
        weight = samples.active.float()
        advantage = samples.advantage
        if self.config.normalize_advantage == "batch":
            advantage = normalized(advantage, weight)
        targets = torch.stack([samples.log_prob, samples.value, advantage, samples.returns, weight], -1)
        return Batch(samples.obs, samples.action, targets)

    def _gradient_step(self, batch: Batch, stopped: Tensor, row: Tensor) -> Tensor:
        """One minibatch: loss, gradient, step. Writes its figures to `row`; returns whether the update is over."""
        config = self.config
        log_prob, value, advantage, returns, weight = batch.targets.unbind(-1)
        if config.normalize_advantage == "minibatch":
            advantage = normalized(advantage, weight)
        # Means over valid samples only.
        valid = weight.sum()
        weight = weight / valid.clamp(min=1.0)
        self.optimizer.zero_grad()
        figures = row[: len(LossTerms._fields)].zero_()
        pieces = torch.arange(len(weight), device=weight.device).tensor_split(config.accumulate) if config.accumulate > 1 else (...,)
        for piece in pieces:
            new = self.policy.evaluate(map_obs(lambda x, piece=piece: x[piece], batch.obs), batch.action[piece])
            terms = ppo_loss(
                new, log_prob[piece], value[piece], advantage[piece], returns[piece], config.clip_range, config.value_clip
            )
            means = weight[piece] @ torch.stack(terms, -1)
            (means @ self.coefficients).backward()
            figures += means.detach()
        kl = figures[LossTerms._fields.index("kl")]
        if config.target_kl is not None:
            stopped = stopped | (kl > config.target_kl)
        norm, applied = self.optimizer.step(skip=stopped | (valid == 0))
        row[-2], row[-1] = norm, applied
        return stopped

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
