"""Tape: the last steps of a few arenas, in the memory of their device, until the host reads them.

A step writes what the arenas were before and after it, and who ended, by operations that a CUDA graph can capture and without
a host sync. It reads the game and changes nothing in it. The host reads all that is new in one transfer.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
    """[n, K] bool: the step ended the episode"""
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
        row = 2 * self.words + 1 + self.seats * (1 + len(self.measures))
        self._memory = torch.zeros(COUNTER + steps * len(self.arenas) * row, dtype=torch.int32, device=device)
        self._written = self._memory[:COUNTER].view(torch.int64)
        """[1]: steps so far, on the device"""
        self._rows = self._memory[COUNTER:].view(steps, len(self.arenas), row)
        self._which = torch.tensor(self.arenas, device=device)
        self._shape = state.shape
        self._read = 0
        """How many steps the host has read or dropped"""

    def write(self, state: GameState, previous: GameState, ended: Tensor, policy: Tensor,
              metrics: Mapping[str, Tensor]) -> None:
        """Keeps a step. `ended` [E]; `policy` [E * S]: the rows of the policy; `metrics`: those of the step."""
        marks = [ended.unsqueeze(-1), policy.view(self._shape)]
        marks += [metrics[SUCCESS.format(name)].view(self._shape) == 1.0 for name in self.measures]
        parts = [previous.memory, state.memory, torch.cat(marks, -1)]
        row = torch.cat([part.index_select(0, self._which) for part in parts], -1)  # bool becomes 0 and 1
        self._rows.index_copy_(0, self._written.remainder(self.steps), row.unsqueeze(0))
        self._written.add_(1)

    def read(self) -> Strip:
        """All steps since the last call, as far as they are still there. This is a host sync and one transfer."""
        memory = self._memory.to("cpu", copy=True)
        written = int(memory[:COUNTER].view(torch.int64))
        new = min(written - self._read, self.steps)
        torn, self._read = written - self._read > self.steps, written
        rows = memory[COUNTER:].view(self._rows.shape)
        order = (torch.arange(written - new, written) % self.steps) if written % self.steps else slice(self.steps - new, None)
        rows, words = rows[order], self.words
        flags = rows[..., 2 * words:].bool()
        of_seats = flags[..., 1:].reshape(*flags.shape[:2], 1 + len(self.measures), self.seats)
        return Strip(rows[..., :words], rows[..., words:2 * words], flags[..., 0], of_seats[..., 0, :], of_seats[..., 1:, :],
                     torn)

    def drop(self) -> None:
        """Forgets the steps so far: the games begin anew. This is a host sync."""
        self._read = int(self._written)
