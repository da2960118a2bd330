"""Tape: the last steps of a few arenas, in the memory of their device, until the host reads them.

A step writes what the arenas were before and after it, and who ended, by operations that a CUDA graph can capture and without
a host sync. It reads the game and changes nothing in it. The host reads all that is new in one transfer.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from wavedash.rocket.measures.combine import SUCCESS
from wavedash.rocket.state import GameState

COUNTER = 2
"""Words of the counter of steps, a 64-bit number at the beginning of the memory"""


@dataclass(frozen=True)
class Strip:
    """What a tape held of n steps of K arenas, in the memory of the host."""

    before: Tensor
    """[n, K, W]: records of the arenas before each step; where an episode begins, its beginning"""
    after: Tensor
    """[n, K, W]: records after it, before another episode begins where one has ended"""
    ended: Tensor
    """[n, K] bool: the step ended the game"""
    policy: Tensor
    """[n, K, S] bool: seats that the policy drove"""
    success: Tensor
    """[n, K, M, S] bool: attempts that succeeded, by measure and seat"""
    torn: bool
    """Whether steps between the last strip and this one are lost"""


class Tape:
    """Room for `steps` steps of these `arenas` of one shard; later ones overwrite the oldest."""

    def __init__(self, state: GameState, arenas: Sequence[int], steps: int, measures: Sequence[str] = ()) -> None:
        """`measures`: the names of the measures whose successes are kept."""
        self.arenas, self.steps, self.measures = list(arenas), steps, list(measures)
        self.seats, self.words, device = state.seats, state.memory.shape[1], state.device
        marks = 1 + self.seats * (1 + len(self.measures))
        self._shapes = [(steps, len(self.arenas), width) for width in (self.words, self.words, marks)]
        self._memory = torch.zeros(COUNTER + sum(map(prod, self._shapes)), dtype=torch.int32, device=device)
        self._written = self._memory[:COUNTER].view(torch.int64)
        """[1]: steps so far, on the device"""
        self._before, self._after, self._marks = self._blocks(self._memory)
        self._slice = evenly_spaced(self.arenas)
        self._which = torch.tensor(self.arenas, device=device)
        self._shape = state.shape
        self._read = 0
        """How many steps the host has read or dropped"""

    def write(self, state: GameState, previous: GameState, ended: Tensor, policy: Tensor,
              metrics: Mapping[str, Tensor]) -> None:
        """Keeps a step. `ended` [E]; `policy` [E * S]: the rows of the policy; `metrics`: those of the step."""
        at = self._written.remainder(self.steps)
        for block, x in ((self._before, previous.memory), (self._after, state.memory),
                         (self._marks, self._marked(ended, policy, metrics).int())):
            block.index_copy_(0, at, self._of_arenas(x).unsqueeze(0))
        self._written.add_(1)

    def read(self) -> Strip:
        """All steps since the last call, as far as they are still there. This is a host sync and one transfer."""
        memory = self._memory.to("cpu", copy=True)
        written = int(memory[:COUNTER].view(torch.int64))
        new = min(written - self._read, self.steps)
        torn, self._read = written - self._read > self.steps, written
        order = torch.arange(written - new, written) % self.steps if written % self.steps else slice(self.steps - new, None)
        before, after, marks = (block[order] for block in self._blocks(memory))
        flags = marks.bool()
        of_seats = flags[..., 1:].reshape(*flags.shape[:2], 1 + len(self.measures), self.seats)
        return Strip(before, after, flags[..., 0], of_seats[..., 0, :], of_seats[..., 1:, :], torn)

    def drop(self) -> None:
        """Forgets the steps so far: the games begin anew. This is a host sync."""
        self._read = int(self._written)

    def _blocks(self, memory: Tensor) -> list[Tensor]:
        """Views [T, K, ...] over the records before and after each step, and its marks."""
        parts = memory[COUNTER:].split_with_sizes([prod(shape) for shape in self._shapes])
        return [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]

    def _marked(self, ended: Tensor, policy: Tensor, metrics: Mapping[str, Tensor]) -> Tensor:
        """[E, ...] bool: who ended, and for every seat whether it is the policy's, and the successes of measures."""
        succeeded = [metrics[SUCCESS.format(name)].view(self._shape) == 1.0 for name in self.measures]
        return torch.cat([ended.unsqueeze(-1), policy.view(self._shape), *succeeded], -1)

    def _of_arenas(self, x: Tensor) -> Tensor:
        """[K, ...]: the rows of the arenas."""
        return x.index_select(0, self._which) if self._slice is None else x[self._slice]


class HostTape(Tape):
    """A tape of arenas in the memory of the host, where the number of the step is known: a step is three copies."""

    def __init__(self, state: GameState, arenas: Sequence[int], steps: int, measures: Sequence[str] = ()) -> None:
        super().__init__(state, arenas, steps, measures)
        self._places = list(zip(*(block.unbind(0) for block in (self._before, self._after, self._marks)), strict=True))
        self._count = 0

    def write(self, state: GameState, previous: GameState, ended: Tensor, policy: Tensor,
              metrics: Mapping[str, Tensor]) -> None:
        before, after, marks = self._places[self._count % self.steps]
        before.copy_(self._of_arenas(previous.memory))
        after.copy_(self._of_arenas(state.memory))
        marks.copy_(self._of_arenas(self._marked(ended, policy, metrics)))
        self._count += 1

    def read(self) -> Strip:
        self._written.fill_(self._count)
        return super().read()

    def drop(self) -> None:
        self._read = self._count


def make_tape(state: GameState, arenas: Sequence[int], steps: int, measures: Sequence[str] = ()) -> Tape:
    """A tape that suits the device of the arenas."""
    return (HostTape if state.device.type == "cpu" else Tape)(state, arenas, steps, measures)


def evenly_spaced(numbers: Sequence[int]) -> slice | None:
    """The slice that picks these numbers, if there is one: a view costs less than a copy."""
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 1
    if step < 1 or list(numbers) != list(range(numbers[0], numbers[-1] + 1, step)):
        return None
    return slice(numbers[0], numbers[-1] + 1, step)
