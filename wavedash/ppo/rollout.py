"""Rollouts store experience in preallocated tensors [T, N, ...] on the learner's device.

A `Rollout` is what one iteration collects. `RolloutBuffer` holds the latest K of them in one block, so that an update
draws its minibatches from all with one index.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import gymnasium
import torch
from torch import Tensor

from wavedash.envs.obs import ACTION_MASK, Obs, empty_obs, map_obs, named_tensors
from wavedash.policy.memory import State


@dataclass
class Rollout:
    """T steps of N rows. The collector writes them, the learner adds advantages, the update reads all."""

    obs: Obs
    """[T, N, ...] as the networks saw it: normalised"""
    action: Tensor
    """[T, N, ...] as it was sampled: not clipped"""
    log_prob: Tensor
    """[T, N] of the action when it was taken"""
    value: Tensor
    """[T, N] V(obs) when it was acted on"""
    reward: Tensor
    """[T, N] as the environment gave it"""
    terminated: Tensor
    truncated: Tensor
    active: Tensor
    """[T, N] bool: a transition to learn from"""
    final_value: Tensor
    """[T, N] V(final observation) where an episode was truncated"""
    advantage: Tensor
    returns: Tensor
    """[T, N] the target of the critic: advantage + value"""
    memory: State
    """[T / L, N, ...] the policy's memory before the first step of each sequence; empty without memory"""
    labels: dict[str, Tensor] = field(default_factory=dict)
    """[T, N, ...] by name, what a labeller of the loss has said of each step"""

    @property
    def done(self) -> Tensor:
        return self.terminated | self.truncated

    def each_step(self, rows: slice) -> list[Rollout]:
        """Returns T rollouts of one step each, [n, ...], as views of these rows: slicing once is faster than at every write."""
        columns: list[Any] = []
        for name, column in ((each.name, getattr(self, each.name)) for each in fields(self)):
            if name == "memory":  # it is stored once a sequence, not at every step
                columns.append([{}] * len(self.reward))
            elif isinstance(column, dict):
                parts = [part[:, rows].unbind(0) for part in column.values()]
                steps = zip(*parts, strict=True) if parts else [()] * len(self.reward)
                columns.append([dict(zip(column, values, strict=True)) for values in steps])
            else:
                columns.append(column[:, rows].unbind(0))
        return [Rollout(*values) for values in zip(*columns, strict=True)]

    @property
    def fresh(self) -> Tensor:
        """[T, N], true where the memory starts afresh: after the end of an episode, and after an inactive step."""
        fresh = torch.zeros_like(self.active)
        fresh[1:] = self.done[:-1] | ~self.active[:-1]
        return fresh

    def blank_inactive(self) -> None:
        """Overwrites what inactive steps hold: it may be NaN, and NaN times a weight of 0 is still NaN. Their value stays,
        because the step before bootstraps from it."""
        inactive = ~self.active
        zeros = [(x, 0.0) for x in (*named_tensors(self.obs).values(), self.reward, *self.labels.values())]
        for x, blank in [*zeros, (self.action, 0.5)]:  # an action of 0.5 is possible under every distribution
            if x.is_floating_point():  # integers (pictures, choices, masks) cannot be NaN
                x.masked_fill_(inactive.view(*inactive.shape, *(1,) * (x.dim() - inactive.dim())), blank)

    def tensors(self) -> dict[str, Tensor]:
        named: dict[str, Tensor] = {}
        for column in fields(self):
            named |= named_tensors(getattr(self, column.name), column.name)
        return named


class RolloutBuffer:
    """Holds the latest `capacity` rollouts, first in first out."""

    def __init__(
        self,
        capacity: int,
        steps: int,
        rows: int,
        observation_space: gymnasium.Space[Any],
        action_shape: tuple[int, ...],
        action_dtype: torch.dtype,
        device: torch.device,
        memory: State | None = None,
        sequence_length: int | None = None,
        observed: Collection[str] | None = None,
        labels: Mapping[str, tuple[int, ...]] | None = None,
    ):
        """`memory` is the initial memory of all rows; one is stored before every `sequence_length` steps. `observed` are the
        keys of observations that are stored, None: all. `labels` are the shapes of labels by name."""
        self.capacity, self.steps, self.rows, self.sequence_length = capacity, steps, rows, sequence_length
        shape, sequences = (capacity, steps, rows), steps // (sequence_length or steps)

        def scalar(dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self.all = Rollout(
            obs=map_obs(torch.Tensor.zero_, empty_obs(stored_space(observation_space, observed), *shape, device=device)),
            action=torch.zeros(*shape, *action_shape, dtype=action_dtype, device=device),
            log_prob=scalar(), value=scalar(), reward=scalar(), terminated=scalar(torch.bool), truncated=scalar(torch.bool),
            active=scalar(torch.bool), final_value=scalar(), advantage=scalar(), returns=scalar(),
            memory={name: x.expand(capacity, sequences, *x.shape).clone() for name, x in (memory or {}).items()},
            labels={name: torch.zeros(*shape, *one, device=device) for name, one in (labels or {}).items()},
        )
        self.filled = 0
        self.newest = -1

    def next_slot(self) -> Rollout:
        """Returns the storage of the next rollout, which is that of the oldest when the buffer is full."""
        self.newest = (self.newest + 1) % self.capacity
        self.filled = min(self.filled + 1, self.capacity)
        return self.slot(self.newest)

    def slot(self, index: int) -> Rollout:
        return self._each(lambda x: x[index])

    @property
    def samples(self) -> Rollout:
        """Views of every stored step of every row as one batch [filled * T * N, ...], memory [filled * T / L * N, ...]."""
        return self._each(lambda x: x[: self.filled].flatten(0, 2))

    def fresh(self) -> Tensor:
        """Returns `Rollout.fresh` of every stored step, [filled * T * N]."""
        return torch.cat([self.slot(index).fresh.flatten() for index in range(self.filled)])

    def _each(self, view: Callable[[Tensor], Tensor]) -> Rollout:
        parts: Any = {column.name: map_obs(view, getattr(self.all, column.name)) for column in fields(Rollout)}
        return Rollout(**parts)

    def clear(self) -> None:
        self.filled, self.newest = 0, -1

    def state_dict(self) -> dict[str, Tensor]:
        """Returns what later updates still need: nothing where each update uses only its own rollout."""
        return self.all.tensors() if self.capacity > 1 else {}

    def fits(self, state: dict[str, Tensor]) -> bool:
        """Whether a saved buffer has the shape of this one: a resumed run may have other sizes."""
        return all(name in state and state[name].shape == x.shape for name, x in self.all.tensors().items())

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        for name, tensor in self.all.tensors().items():
            tensor.copy_(state[name])


def stored_space(space: gymnasium.Space[Any], observed: Collection[str] | None) -> gymnasium.Space[Any]:
    """Returns the space of those keys that are stored: the observed ones, and the action mask."""
    if observed is None or not isinstance(space, gymnasium.spaces.Dict):
        return space
    return gymnasium.spaces.Dict({key: part for key, part in space.spaces.items() if key in (*observed, ACTION_MASK)})
