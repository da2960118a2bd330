"""The update runs epochs of shuffled minibatches over the stored experience, for whatever loss it is handed.

There is no host sync here. The optimiser's own kernel skips gradients that are not finite, and all that come after an early
stop. The metrics of each gradient step are rows of a table on the device, which the learner reads at the end of the iteration.
"""
from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from wavedash.config import PPOConfig
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.experience import Batch, Experience, normalized
from wavedash.ppo.graphs import CapturedCall
from wavedash.ppo.loss import KL, Loss
from wavedash.ppo.loss_scale import LossScale
from wavedash.ppo.muon import FlatMuon, hidden_matrices
from wavedash.ppo.optimizer import FlatAdamW
from wavedash.ppo.pieces import Pieces, piece_bounds
from wavedash.ppo.ppo_loss import PPOLoss
from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.ppo.rollout import RolloutBuffer
from wavedash.ppo.shortage import Shortage
from wavedash.ppo.split import Split
from wavedash.seeding import stream_seed
from wavedash.threads import give_torch, set_torch_threads

log = logging.getLogger(__name__)

GRAD_NORM, APPLIED = "optim/grad_norm", "applied"


@dataclass(frozen=True)
class UpdateTable:
    """The metrics of every gradient step of an update, on the device."""

    columns: tuple[str, ...]
    """The terms of the loss, GRAD_NORM (before clipping) and APPLIED (1, or 0 where the step was skipped)"""
    values: Tensor
    """[gradient steps, columns]"""

    def __getitem__(self, column: str) -> Tensor:
        return self.values[:, self.columns.index(column)]

    def means(self) -> dict[str, Tensor]:
        """Returns the mean of each column over the steps that were applied; 0 where none was."""
        applied = self[APPLIED]
        means = torch.where(applied.unsqueeze(-1) > 0, self.values, 0).sum(0) / applied.sum().clamp(min=1.0)
        return dict(zip(self.columns, means.unbind(), strict=True))


class Updater:
    """Turns rollouts into better weights."""

    def __init__(self, policy: ActorCritic, config: PPOConfig, seed: int, graphs: bool = False, ranks: Ranks = ALONE,
                 loss: Loss | None = None):
        """With `graphs`, the step of a minibatch is captured once as a CUDA graph and replayed. Each gradient is the mean over
        the minibatches of all `ranks`. `loss` is PPO's, unless another is handed in."""
        self.policy, self.config, self.ranks = policy, config, ranks
        self.loss = PPOLoss(config, next(policy.parameters()).device) if loss is None else loss
        if config.target_kl is not None and KL not in self.loss.terms:
            raise UserError(f"ppo.target_kl={config.target_kl} needs the metric {KL}, which the loss {type(self.loss).__name__}"
                            " does not measure: set ppo.target_kl=null")
        # Collectives between ranks cannot be captured; advantages normalised per minibatch need one in the middle of a step.
        self.graphs = graphs and (ranks.size == 1 or self.normalizes != "minibatch")
        critic_rate = config.critic_learning_rate
        groups: dict[str, tuple[Iterable[nn.Parameter], float]] = {"policy": (policy.parameters(), config.learning_rate)}
        if critic_rate is not None or config.critic_warmup:
            groups = {
                "actor": (policy.actor.parameters(), config.learning_rate),
                "critic": (policy.critic.parameters(), config.learning_rate if critic_rate is None else critic_rate),
            }
        extra = len(self.loss.terms) + 1
        adam: Any = (groups, config.adam_betas, config.adam_eps, config.weight_decay, config.max_grad_norm, extra)
        self.optimizer = FlatMuon(*adam, matrices=hidden_matrices(policy)) if config.optimizer == "muon" else FlatAdamW(*adam)
        self.means, self.count = self.optimizer.extra[:-1], self.optimizer.extra[-1]
        """The terms of the loss of the current minibatch, averaged over its valid samples, and how many those are"""
        device = self.optimizer.parameters.device
        self.scale = LossScale(device) if policy.precision == torch.float16 else None
        self.optimizer.scale = None if self.scale is None else self.scale.value
        self.generator = torch.Generator(device).manual_seed(stream_seed(seed, "minibatches", ranks.rank))
        self.stopped = torch.zeros((), dtype=torch.bool, device=device)
        """Whether this update was stopped early: its other gradient steps change nothing."""
        self.experience: Experience | None = None
        self.split = Split(config)
        self.shortage = Shortage(ranks, device)
        self._stored = config.minibatch_size  # samples of the current update
        self._nothing = torch.zeros(len(self.columns), device=device)  # of a rank that failed
        self._graphs: dict[int, tuple[Tensor, Callable[[], Tensor]]] = {}
        self._pieces: Pieces | None = None  # created for the first minibatch that is large enough

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that an update returns."""
        return (*self.loss.terms, GRAD_NORM, APPLIED)

    @property
    def normalizes(self) -> str:
        """Over what advantages are normalised: `batch`, `minibatch` or `off`, as where the loss does not read them."""
        return self.config.normalize_advantage if self.loss.values else "off"

    def update(self, buffer: RolloutBuffer) -> UpdateTable:
        """Runs all epochs over the buffer. torch.OutOfMemoryError, on all ranks: one of them had not enough memory for its
        samples, a gradient or a step. Weights and optimiser are then somewhere in the update; after `restore` and
        `compute_less_at_once` it can be done again."""
        self.shortage.failure, self._stored = None, len(buffer.samples.value)
        self.shortage.attempt(lambda: self.experience_of(buffer))
        if self.policy.compiled:
            set_torch_threads(self.split.at_once(self.config.minibatch_size), self.policy.config)
        else:
            give_torch(1)  # pieces of a minibatch have threads of their own
        # Inference mode also spares version counters: small networks take a fifth less time.
        without_autograd = self.policy.explicit is not None and not self.loss.autograd
        with torch.inference_mode() if without_autograd else torch.no_grad():
            self.shortage.meet(lambda: self.experience_of(buffer).refresh(),
                               2 if self.normalizes == "batch" else 0)
            self.shortage.settle()
            table = self._run_epochs(self.experience_of(buffer))
        self.shortage.settle()
        return table

    def compute_less_at_once(self) -> None:
        """Halves the parts in which minibatches are computed, on all ranks alike, and frees memory. UserError: they cannot be
        smaller."""
        length = self.policy.sequence_length or 1
        minibatch = min(self.config.minibatch_size, self._stored)
        fitting = self.split.halve(minibatch, length)
        log.warning("a minibatch of %s samples does not fit into the memory of the device: it is computed in parts of %s from "
                    "now on, whose gradients add up to the same. To begin like this: ppo.microbatch_size=%d",
                    f"{minibatch:,}", f"{fitting:,}", fitting)
        self.forget_graphs()
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def restore(self, before: dict[str, Tensor]) -> None:
        """Sets weights and optimiser to what `Learner.before_update` holds."""
        self.optimizer.parameters.copy_(before["parameters"])
        self.load_state_dict(before)

    def _run_epochs(self, experience: Experience) -> UpdateTable:
        config = self.config
        self.stopped.zero_()
        per_minibatch = max(1, config.minibatch_size // (experience.length or 1))
        count = experience.kept(config.keep_samples)
        minibatches = -(-count // per_minibatch)
        kept = self.shortage.attempt(lambda: experience.largest_advantages(config.keep_samples))

        def shuffled() -> Sequence[Tensor]:
            order = torch.randperm(count, generator=self.generator, device=self.stopped.device)
            # Minibatches are of nearly equal size: no sample is dropped, and the last minibatch is not tiny.
            return (order if kept is None else kept[order]).tensor_split(minibatches)

        rows = []
        for _ in range(config.epochs):
            rows += [self._learn_from(index) for index in self.shortage.attempt(shuffled) or [self._nothing] * minibatches]
        return UpdateTable(self.columns, torch.stack(rows))

    def experience_of(self, buffer: RolloutBuffer) -> Experience:
        """Returns the experience to draw from. It is created anew when the buffer holds more rollouts than before."""
        if self.experience is None or self.experience.buffer is not buffer or self.experience.filled != buffer.filled:
            self.experience = Experience(buffer, self.normalizes == "batch", self.ranks, self.loss.labels)
            self._graphs.clear()
        return self.experience

    def _learn_from(self, index: Tensor) -> Tensor:
        """Makes a gradient step on these samples or sequences and returns its row of the table."""
        assert self.experience is not None
        experience = self.experience
        if not (self.graphs and index.is_cuda) or self.shortage:
            if self.ranks.size > 1:
                return self._step_with_others(lambda: self._compute_gradient(experience.take(index)), self._apply_gradient)
            return self._gradient_step(experience.take(index))
        if len(index) not in self._graphs:
            fixed = torch.empty_like(index)  # a captured graph reads the indices of its samples here
            self._graphs[len(index)] = fixed, self._captured_step(lambda: experience.take(fixed))
        fixed, step = self._graphs[len(index)]
        fixed.copy_(index)
        return step().clone()

    def _captured_step(self, take: Callable[[], Batch]) -> Callable[[], Tensor]:
        if self.ranks.size == 1:
            return CapturedCall(lambda: self._gradient_step(take()), "the update of a minibatch", smaller=True)
        gradient = CapturedCall(lambda: self._compute_gradient(take()), "the gradient of a minibatch", smaller=True)
        step = CapturedCall(self._apply_gradient, "the step of the optimiser")
        return lambda: self._step_with_others(gradient, step)

    def _gradient_step(self, batch: Batch) -> Tensor:
        """Computes the gradient of one minibatch, applies it and returns its row of the table."""
        self._compute_gradient(batch)
        return self._apply_gradient()

    def _step_with_others(self, gradient: Callable[[], None], step: Callable[[], Tensor]) -> Tensor:
        """Makes a step with the gradients of several ranks. A rank whose memory is too small still meets the others, with a
        gradient that is not finite, so that nobody applies it; at the end of the update all of them know."""
        self.shortage.meet(gradient, 2 if self.normalizes == "minibatch" else 0)
        if self.shortage:
            self.optimizer.reduce_buffer.fill_(torch.nan)
        self.shortage.noticed(lambda: self.ranks.mean_(self.optimizer.reduce_buffer))
        row = self.shortage.attempt(step)
        return self._nothing if row is None else row

    def _compute_gradient(self, batch: Batch) -> None:
        """Computes gradient, means and count of this rank's minibatch."""
        stored = batch.stored
        if self.normalizes == "minibatch":
            stored.advantage.copy_(normalized(stored.advantage, stored.weight, self.ranks))
        self.optimizer.zero_grad()
        self.count.copy_(stored.weight.sum())
        stored.weight.div_(self.count.clamp(min=1.0))  # means over valid samples only
        for part in batch.parts(self.split.parts(batch.size, self.policy.sequence_length or 1)):
            bounds = piece_bounds(part.size, self.policy)
            if len(bounds) == 2:
                self._add_gradient(self.policy, part, self.optimizer.extra)
            else:
                if self._pieces is None:
                    self._pieces = Pieces(self.policy, self.optimizer)
                self._pieces.add(part.between(bounds), self._add_gradient)

    def _add_gradient(self, policy: ActorCritic, piece: Batch, extra: Tensor) -> None:
        """Adds what these samples contribute to the gradients of `policy`, and to the means that `extra` begins with."""
        terms = self.loss.add_gradient(policy, piece, None if self.scale is None else self.scale.value)
        extra[:-1] += piece.flat.weight @ torch.stack(list(terms), -1)

    def _apply_gradient(self) -> Tensor:
        target_kl = self.config.target_kl
        if target_kl is not None:
            self.stopped |= self.means[self.loss.terms.index(KL)] > target_kl
        norm, applied = self.optimizer.step(skip=self.stopped if target_kl is not None else None)
        if self.scale is not None:
            self.scale.adapt(norm)
        return torch.cat([self.means, norm.view(1), applied.view(1)])

    @property
    def actor_learns(self) -> bool:
        """Whether gradient steps change the actor as well as the critic."""
        return "actor" not in self.optimizer.frozen

    def freeze_actor(self, frozen: bool) -> None:
        """Lets only the critic learn, or both again. The actor's weights and moments stay as they are meanwhile. There is no
        effect where the optimiser does not have the two apart (`ppo.critic_warmup` was 0 when it was made)."""
        groups = frozenset({"actor"} & set(self.optimizer.parts)) if frozen else frozenset()
        if groups != self.optimizer.frozen:
            self.optimizer.frozen = groups
            self.forget_graphs()  # which groups are stepped is fixed in them

    def change(self, config: PPOConfig) -> None:
        """Takes over other options from the next update on. Captured graphs keep the old ones: see `forget_graphs`."""
        self.config = config
        self.split.change(config)
        self.loss.configure(config)
        rates = self.optimizer.base_rates
        critic_rate = config.learning_rate if config.critic_learning_rate is None else config.critic_learning_rate
        rates.update({name: critic_rate if name == "critic" else config.learning_rate for name in rates})

    def forget_graphs(self) -> None:
        """Drops the captured graphs; they are captured again with the options of that time."""
        self._graphs.clear()

    def state_dict(self) -> dict[str, Tensor]:
        scale = {} if self.scale is None else self.scale.state_dict()
        return {**self.optimizer.state_dict(), **scale, "minibatches": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.optimizer.load_state_dict(state)
        if "minibatches" in state:
            self.generator.set_state(state["minibatches"])
        if self.scale is not None:
            self.scale.load_state_dict(state)
