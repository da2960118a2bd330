"""A shortage of memory on one of several ranks.

The others are waiting for it in their next collective, so it may not simply raise: it goes on to meet them, with nothing to
say, until all of them ask together whether anybody has failed.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from wavedash.ppo.ranks import Ranks

T = TypeVar("T")


class Shortage:
    """What a rank remembers of its failure while it goes through the rest of an update. A process that is alone raises at
    once."""

    def __init__(self, ranks: Ranks, device: torch.device):
        self.ranks = ranks
        self.failure: str | None = None
        """Why this rank's part of the current update failed: there was not enough memory"""
        self._zeros = torch.zeros(2, device=device)

    def __bool__(self) -> bool:
        """Whether this rank has failed."""
        return self.failure is not None

    def attempt(self, work: Callable[[], T]) -> T | None:
        """Does a part of the update, unless this rank has failed. None: it has, or fails now."""
        return None if self else self.noticed(work)

    def noticed(self, work: Callable[[], T]) -> T | None:
        """Does a part of the update, even if this rank has failed. None: it fails now."""
        try:
            return work()
        except torch.OutOfMemoryError as error:
            if self.ranks.size == 1:
                raise
            self.failure = str(error)
            return None

    def meet(self, work: Callable[[], object], sums: int) -> None:
        """Does a part of the update in which all ranks add up two numbers so many times (`normalized` does so twice). A rank
        that fails before it has done so, or had failed earlier, adds zeros instead."""
        before = self.ranks.meetings
        self.attempt(work)
        if self:
            for _ in range(before + sums - self.ranks.meetings):
                self.ranks.sum_(self._zeros.zero_())

    def settle(self) -> None:
        """Raises torch.OutOfMemoryError on all ranks if one of them has failed."""
        if self.ranks.any(bool(self)):
            raise torch.OutOfMemoryError(self.failure or "another process of the run has not enough memory")
