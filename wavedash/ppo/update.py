"""The update: epochs of shuffled minibatches over the stored experience.

Nothing here waits for the device. A gradient that is not finite, and everything after the early stop, is skipped by the
optimiser's own kernel; figures are written to a table on the device and read by the learner when the iteration is over.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from wavedash.config import PPOConfig
from wavedash.envs.obs import Obs, map_obs
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.memory import State
from wavedash.ppo.graphs import Replayed
from wavedash.ppo.loss import Coefficients, LossTerms, ppo_loss
from wavedash.ppo.loss_scale import LossScale
from wavedash.ppo.optimizer import FlatAdamW
from wavedash.ppo.pieces import Pieces, piece_bounds
from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.ppo.rollout import RolloutBuffer
from wavedash.seeding import stream_seed
from wavedash.threads import give_torch, set_torch_threads

FIGURES = (*LossTerms._fields, "grad_norm", "applied")


class Batch(NamedTuple):
    """Steps to learn from: [B, ...], or with memory sequences of them [L, B, ...]."""

    obs: Obs
    action: Tensor
    numbers: Tensor
    """[..., 5]: log_prob, value, advantage, returns, weight; side by side, so that one gather takes them all"""
    memory: State
    """[B, ...] before the first step of each sequence"""
    fresh: Tensor | None
    """[L, B] where an episode begins"""

    @property
    def size(self) -> int:
        """How many samples or sequences."""
        return self.numbers.shape[self.numbers.dim() - 2]

    def parts(self, count: int) -> list[Batch]:
        """Nearly equal ones, as views."""
        return self.between([self.size * k // count for k in range(count + 1)])

    def between(self, bounds: Sequence[int]) -> list[Batch]:
        """The samples or sequences from each of these numbers to the next, as views."""
        if len(bounds) == 2:
            return [self]
        across = self.numbers.dim() - 2  # the axis of samples or sequences
        return [self._slice(across, a, b - a) for a, b in pairwise(bounds) if a < b]

    def _slice(self, across: int, start: int, length: int) -> Batch:
        def part(x: Tensor) -> Tensor:
            return x.narrow(across, start, length)

        memory = {name: x[start : start + length] for name, x in self.memory.items()}
        fresh = None if self.fresh is None else part(self.fresh)
        return Batch(map_obs(part, self.obs), part(self.action), part(self.numbers), memory, fresh)


class Experience:
    """Everything in the buffer, ready to be drawn from: single steps, or whole sequences where the policy has memory.

    Its tensors stay where they are for as long as the buffer holds as many rollouts; `refresh` brings them up to date.
    """

    def __init__(self, buffer: RolloutBuffer, normalize_advantage: bool, ranks: Ranks):
        self.buffer, self.filled, self.normalize_advantage, self.ranks = buffer, buffer.filled, normalize_advantage, ranks
        self.samples, self.rows, self.length = buffer.samples, buffer.rows, buffer.sequence_length
        numbers = torch.empty(*self.samples.value.shape, 5, device=self.samples.value.device)
        fresh = None if self.length is None else torch.empty_like(self.samples.active)
        self.all = Batch(self.samples.obs, self.samples.action, numbers, self.samples.memory, fresh)
        self.size = len(numbers) // (self.length or 1)
        """Number of steps, or of sequences"""

    def refresh(self) -> None:
        samples = self.samples
        weight = samples.active.float()
        advantage = normalized(samples.advantage, weight, self.ranks) if self.normalize_advantage else samples.advantage
        torch.stack([samples.log_prob, samples.value, advantage, samples.returns, weight], -1, out=self.all.numbers)
        self.all.numbers.masked_fill_(~samples.active.unsqueeze(-1), 0.0)  # an empty seat may be worth NaN
        if self.all.fresh is not None:
            self.all.fresh.copy_(self.buffer.fresh())

    def take(self, index: Tensor) -> Batch:
        """The steps or sequences numbered `index`."""
        every = self.all
        if self.length is None:
            return Batch(map_obs(lambda x: _chosen(x, index), every.obs), _chosen(every.action, index),
                         _chosen(every.numbers, index), {}, None)
        # Steps lie time-major: those of one row are `rows` apart. Sequence s is number s // rows in time, of row s % rows.
        first = index + index.div(self.rows, rounding_mode="floor") * (self.length - 1) * self.rows
        steps = first + torch.arange(self.length, device=index.device).unsqueeze(-1) * self.rows  # [L, B]
        memory = {name: x[index] for name, x in every.memory.items()}
        assert every.fresh is not None
        obs = map_obs(lambda x: x[steps], every.obs)
        return Batch(obs, every.action[steps], every.numbers[steps], memory, every.fresh[steps])


class Updater:
    """Turns rollouts into better weights."""

    def __init__(self, policy: ActorCritic, config: PPOConfig, seed: int, graphs: bool = False, ranks: Ranks = ALONE):
        """`graphs`: on CUDA, record the step of a minibatch once and replay it. `ranks`: each step is that of the
        minibatches of all ranks together."""
        self.policy, self.config, self.ranks = policy, config, ranks
        # What ranks say to each other is not recorded; here they would speak in the middle of a step.
        self.graphs = graphs and (ranks.size == 1 or config.normalize_advantage != "minibatch")
        critic_rate = config.critic_learning_rate
        groups: dict[str, tuple[Iterable[nn.Parameter], float]] = {"policy": (policy.parameters(), config.learning_rate)}
        if critic_rate is not None:
            groups = {
                "actor": (policy.actor.parameters(), config.learning_rate),
                "critic": (policy.critic.parameters(), critic_rate),
            }
        self.optimizer = FlatAdamW(groups, config.adam_betas, config.adam_eps, config.weight_decay, config.max_grad_norm,
                                   extra=len(LossTerms._fields) + 1)
        self.means, self.count = self.optimizer.extra[:-1], self.optimizer.extra[-1]
        """Of the current minibatch: its LossTerms, averaged over valid samples, and how many those are"""
        device = self.optimizer.parameters.device
        self.coefficients = Coefficients.of(config, device)
        self.scale = LossScale(device) if policy.precision == torch.float16 else None
        self.optimizer.scale = None if self.scale is None else self.scale.value
        self.generator = torch.Generator(device).manual_seed(stream_seed(seed, "minibatches", ranks.rank))
        self.stopped = torch.zeros((), dtype=torch.bool, device=device)
        """The early stop has come: the rest of this update changes nothing."""
        self.experience: Experience | None = None
        self._replays: dict[int, tuple[Tensor, Callable[[], Tensor]]] = {}
        self._pieces: Pieces | None = None  # made when a minibatch is large enough

    def update(self, buffer: RolloutBuffer) -> Tensor:
        """All epochs over the buffer; returns a table [gradient steps, FIGURES] on the device."""
        experience = self._experience_of(buffer)
        if self.policy.compiled:
            set_torch_threads(self.config.minibatch_size // self.config.accumulate, self.policy.config)
        else:
            give_torch(1)  # pieces of a minibatch have threads of their own
        # Where autograd is not needed at all, torch need not keep its books either: a fifth less time for small networks.
        with torch.inference_mode() if self.policy.explicit is not None else torch.no_grad():
            return self._run_epochs(experience)

    def _run_epochs(self, experience: Experience) -> Tensor:
        config = self.config
        experience.refresh()
        self.stopped.zero_()
        per_minibatch = max(1, config.minibatch_size // (experience.length or 1))
        minibatches = -(-experience.size // per_minibatch)
        table = []
        for _ in range(config.epochs):
            order = torch.randperm(experience.size, generator=self.generator, device=self.stopped.device)
            # Even pieces: no sample is dropped and none is left over for a tiny last minibatch.
            table += [self._learn_from(index) for index in order.tensor_split(minibatches)]
        return torch.stack(table)

    def _experience_of(self, buffer: RolloutBuffer) -> Experience:
        if self.experience is None or self.experience.buffer is not buffer or self.experience.filled != buffer.filled:
            self.experience = Experience(buffer, self.config.normalize_advantage == "batch", self.ranks)
            self._replays.clear()
        return self.experience

    def _learn_from(self, index: Tensor) -> Tensor:
        """The gradient step of these samples or sequences; returns its FIGURES."""
        assert self.experience is not None
        experience = self.experience
        if not (self.graphs and index.is_cuda):
            return self._gradient_step(experience.take(index))
        if len(index) not in self._replays:
            fixed = torch.empty_like(index)  # where a replay looks for the numbers of its samples
            self._replays[len(index)] = fixed, self._recorded_step(lambda: experience.take(fixed))
        fixed, step = self._replays[len(index)]
        fixed.copy_(index)
        return step().clone()

    def _recorded_step(self, take: Callable[[], Batch]) -> Callable[[], Tensor]:
        if self.ranks.size == 1:
            return Replayed(lambda: self._gradient_step(take()), "the update of a minibatch")
        gradient = Replayed(lambda: self._compute_gradient(take()), "the gradient of a minibatch")
        step = Replayed(self._apply_gradient, "the step of the optimiser")

        def both() -> Tensor:
            gradient()
            self.ranks.mean_(self.optimizer.message)
            return step()

        return both

    def _gradient_step(self, batch: Batch) -> Tensor:
        """One minibatch: loss, gradient, step. Returns its FIGURES."""
        self._compute_gradient(batch)
        self.ranks.mean_(self.optimizer.message)
        return self._apply_gradient()

    def _compute_gradient(self, batch: Batch) -> None:
        """Gradient, means and count of this rank's minibatch."""
        config, numbers = self.config, batch.numbers
        weight = numbers[..., 4]
        if config.normalize_advantage == "minibatch":
            numbers[..., 2] = normalized(numbers[..., 2], weight, self.ranks)
        self.optimizer.zero_grad()
        self.count.copy_(weight.sum())
        weight /= self.count.clamp(min=1.0)  # means over valid samples only
        for part in batch.parts(config.accumulate):
            bounds = piece_bounds(part.size, self.policy)
            if len(bounds) == 2:
                self._add_gradient(self.policy, part, self.optimizer.extra)
            else:
                if self._pieces is None:
                    self._pieces = Pieces(self.policy, self.optimizer)
                self._pieces.add(part.between(bounds), self._add_gradient)

    def _add_gradient(self, policy: ActorCritic, piece: Batch, extra: Tensor) -> None:
        """Adds to the gradients of `policy` and to the means in `extra` what these samples contribute."""
        log_prob, value, advantage, returns, weight = piece.numbers.flatten(0, -2).unbind(-1)
        new = policy.evaluate(piece.obs, piece.action, piece.memory, piece.fresh)
        terms, slopes = ppo_loss(new, log_prob, value, advantage, returns, weight, self.config, self.coefficients)
        new.pull_back(slopes if self.scale is None else self.scale.raise_(slopes))
        extra[:-1] += weight @ torch.stack(terms, -1)

    def _apply_gradient(self) -> Tensor:
        target_kl = self.config.target_kl
        if target_kl is not None:
            self.stopped |= self.means[LossTerms._fields.index("kl")] > target_kl
        norm, applied = self.optimizer.step(skip=self.stopped if target_kl is not None else None)
        if self.scale is not None:
            self.scale.adapt(norm)
        return torch.cat([self.means, norm.view(1), applied.view(1)])

    def forget_graphs(self) -> None:
        """They are captured again, with what the configuration says by then."""
        self._replays.clear()

    def state_dict(self) -> dict[str, Tensor]:
        scale = {} if self.scale is None else self.scale.state_dict()
        return {**self.optimizer.state_dict(), **scale, "minibatches": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.optimizer.load_state_dict(state)
        if "minibatches" in state:
            self.generator.set_state(state["minibatches"])
        if self.scale is not None:
            self.scale.load_state_dict(state)


def _chosen(x: Tensor, index: Tensor) -> Tensor:
    """x[index]. On a CPU, `index_select` copies whole rows and is four to ten times faster."""
    return x[index] if x.is_cuda else x.index_select(0, index)


def normalized(advantage: Tensor, weight: Tensor, ranks: Ranks = ALONE) -> Tensor:
    """Mean 0 and deviation 1 over the samples that count."""
    centred = advantage - ranks.mean(advantage, weight)
    return centred / (ranks.mean(centred.square(), weight).sqrt() + 1e-8)
