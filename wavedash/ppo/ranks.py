"""Ranks: the processes of one run, and what they say to each other.

`torchrun --nproc-per-node 2 -m wavedash train ...` starts the processes and numbers them. Training is data parallel: every rank
has rows of its own and learns from them, and because each gradient and each statistic is that of the rows of all ranks, weights
stay equal everywhere. That is what torch's DistributedDataParallel is for; its wrapper is not needed where all gradients lie in
one buffer and are shared in one call.

Tensors are combined on their device. Everything else (metrics, saved state) goes from host to host, between iterations.
"""
from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from wavedash.errors import UserError

T = TypeVar("T")

PATIENCE = timedelta(minutes=30)
"""How long to wait for a rank that is slow: an environment that takes long to start, a disk that hangs. A rank that has died is
noticed at once, or, where NCCL waits for it, by torchrun, which ends the others."""


class RanksError(UserError):
    """The other ranks cannot be reached."""


class Ranks:
    """One process alone, which need not agree with another: every method gives back what it was given."""

    rank = 0
    size = 1
    local_rank = 0
    """The number of this rank among those on the same machine; `local_size` is how many these are"""
    local_size = 1

    def use(self, device: torch.device) -> None:
        """Must be called once the device of this rank's tensors is known."""

    # --- tensors: called by all ranks alike ----------------------------------------------------------------------------

    def sum_(self, tensor: Tensor) -> Tensor:
        """Replaces the tensor by its sum over ranks, in place, and returns it."""
        return tensor

    def first_(self, tensor: Tensor) -> None:
        """Replaces the tensor by what the first rank has, in place."""

    def joined_rows(self, x: Tensor) -> Tensor:
        """The rows of all ranks, [N, ...] of each."""
        return x

    def mean(self, x: Tensor, weight: Tensor) -> Tensor:
        """Weighted mean over the samples of all ranks."""
        total, count = self.sum_(torch.stack([(x * weight).sum(), weight.sum()])).unbind()
        return total / count.clamp(min=1.0)

    def mean_(self, means: Tensor) -> None:
        """Replaces the means over the samples of this rank by those over the samples of all, in place. The last number is how
        many samples there are."""

    # --- words: any plain value, on the host ---------------------------------------------------------------------------

    def any(self, flag: bool) -> bool:
        """Whether it is true on any rank."""
        return flag

    def all_gather(self, word: T) -> list[T]:
        """What each rank says, known to all."""
        return [word]

    def scatter(self, words: Sequence[T] | None) -> T:
        """The first rank gives each rank its word, in order; the others call it with None."""
        assert words is not None
        return words[0]

    def ask(self) -> list[Any]:
        """Called by the first rank: the answers of the others, which stand by."""
        return []

    def stand_by(self, answer: Callable[[], Any]) -> None:
        """The others answer as often as the first rank asks, until it stands by itself: then all go on."""


ALONE = Ranks()


class SeveralRanks(Ranks):
    """The ranks of a process group."""

    def __init__(self, rank: int, size: int, local_rank: int, local_size: int):
        self.rank, self.size, self.local_rank, self.local_size = rank, size, local_rank, local_size
        self._nccl: Any = None

    def use(self, device: torch.device) -> None:
        """GPUs talk by NCCL, if each rank has one for itself. What lies on a shared GPU, or where there is no NCCL (Windows),
        goes through the host."""
        without = device.type != "cuda" or device.index != self.local_rank or not dist.is_nccl_available()
        if not self.any(without):
            with _reaching_the_others():
                self._nccl = dist.new_group(backend="nccl", timeout=PATIENCE)

    def sum_(self, tensor: Tensor) -> Tensor:
        self._on_the_wire(tensor, dist.all_reduce)
        return tensor

    def first_(self, tensor: Tensor) -> None:
        self._on_the_wire(tensor, lambda x, group: dist.broadcast(x, 0, group))

    def joined_rows(self, x: Tensor) -> Tensor:
        whole = x.new_zeros(self.size, *x.shape)
        whole[self.rank] = x
        return self.sum_(whole).flatten(0, 1)

    def mean_(self, means: Tensor) -> None:
        values, count = means[:-1], means[-1]
        values *= count
        self.sum_(means)
        values /= count.clamp(min=1.0)

    def _on_the_wire(self, tensor: Tensor, collective: Callable[..., Any]) -> None:
        with _reaching_the_others():
            if tensor.device.type == "cpu" or self._nccl is not None:
                collective(tensor, group=None if tensor.device.type == "cpu" else self._nccl)
            else:
                host = tensor.cpu()
                collective(host, group=None)
                tensor.copy_(host)

    def any(self, flag: bool) -> bool:
        return bool(self.sum_(torch.tensor(int(flag))))

    def all_gather(self, word: T) -> list[T]:
        words: list[Any] = [None] * self.size
        with _reaching_the_others():
            dist.all_gather_object(words, word)
        return words

    def scatter(self, words: Sequence[T] | None) -> T:
        received: list[Any] = [None]
        with _reaching_the_others():
            dist.scatter_object_list(received, None if words is None else list(words), src=0)
        return received[0]

    def ask(self) -> list[Any]:
        self._first_asks(True)
        answers = [None] * self.size
        with _reaching_the_others():
            dist.gather_object(None, answers, dst=0)
        return answers[1:]

    def stand_by(self, answer: Callable[[], Any]) -> None:
        while self._first_asks(False):
            word = answer()
            with _reaching_the_others():
                dist.gather_object(word, dst=0)

    def _first_asks(self, asks: bool) -> bool:
        """What the first rank says counts."""
        flag = torch.tensor(int(asks))
        self.first_(flag)
        return bool(flag)


@contextmanager
def joined_ranks() -> Iterator[Ranks]:
    """The ranks that torchrun started, or this process alone."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1 or "LOCAL_RANK" not in os.environ:
        yield ALONE
        return
    if not dist.is_available():
        raise RanksError("this torch was built without torch.distributed: start one process, without torchrun")
    with _reaching_the_others():
        dist.init_process_group("gloo", timeout=PATIENCE)  # for words and for tensors on the CPU, whatever the device
    try:
        if dist.get_rank() > 0:  # the first rank speaks for all; what goes wrong here is in its counters, too
            logging.getLogger("wavedash").setLevel(logging.ERROR)
        yield SeveralRanks(dist.get_rank(), size, *(int(os.environ[name]) for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE")))
    finally:
        dist.destroy_process_group()


@contextmanager
def _reaching_the_others() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        reason = str(error).splitlines()[0].split(". ")[0]
        raise RanksError("another process of this run has ended or cannot be reached; its own message says why "
                         f"({reason})") from error
