"""Ranks are the processes of one run; this file holds their communication.

`torchrun --nproc-per-node 2 -m wavedash train ...` starts the processes and numbers them. Training is data parallel: every rank
learns from rows of its own, and because each gradient and each statistic is taken over the rows of all ranks, weights stay
equal everywhere. torch's DistributedDataParallel does the same; its wrapper is not needed, because all gradients lie in one
buffer and take one all-reduce.

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
"""How long to wait for a slow rank (an environment that takes long to start, a disk that hangs). A dead rank is noticed at once
or, where NCCL waits for it, by torchrun, which ends the others."""


class RanksError(UserError):
    """The other ranks cannot be reached."""


class Ranks:
    """The interface, and the case of a single process: every method returns what it was given."""

    rank = 0
    size = 1
    local_rank = 0
    """The number of this rank among the `local_size` ranks on the same machine"""
    local_size = 1
    meetings = 0
    """How many collectives on tensors were done: a rank that fails between two of them knows how many the others wait for"""

    def set_device(self, device: torch.device) -> None:
        """Must be called once the device of this rank's tensors is known."""

    # --- collectives on tensors: all ranks call them -------------------------------------------------------------------

    def sum_(self, tensor: Tensor) -> Tensor:
        """Replaces the tensor by its sum over ranks, in place, and returns it."""
        return tensor

    def broadcast_(self, tensor: Tensor) -> None:
        """Replaces the tensor by that of the first rank, in place."""

    def gather_rows(self, x: Tensor) -> Tensor:
        """Returns the rows of all ranks, [N, ...] of each, as one tensor."""
        return x

    def mean(self, x: Tensor, weight: Tensor) -> Tensor:
        """Returns the weighted mean over the samples of all ranks."""
        total, count = self.sum_(torch.stack([(x * weight).sum(), weight.sum()])).unbind()
        return total / count.clamp(min=1.0)

    def mean_(self, means: Tensor) -> None:
        """Replaces the means over the samples of this rank by those over the samples of all, in place. The last number is how
        many samples there are."""

    # --- any Python value, on the host ---------------------------------------------------------------------------------

    def any(self, flag: bool) -> bool:
        """Whether it is true on any rank."""
        return flag

    def all_gather(self, value: T) -> list[T]:
        """Returns the values of all ranks, on every rank."""
        return [value]

    def scatter(self, values: Sequence[T] | None) -> T:
        """Gives each rank its value from the list of the first rank; the others call it with None."""
        assert values is not None
        return values[0]

    def shared(self, value: T) -> T:
        """Returns the value of the first rank, on every rank."""
        return self.scatter([value] * self.size if self.rank == 0 else None)

    def request(self) -> list[Any]:
        """Is called by the first rank, and returns the answers of the others, which are in `serve_requests`."""
        return []

    def serve_requests(self, answer: Callable[[], Any]) -> None:
        """Is called by all ranks. The others answer every request of the first rank, until it calls this method as well."""


ALONE = Ranks()


class SeveralRanks(Ranks):
    """Ranks of a torch process group."""

    def __init__(self, rank: int, size: int, local_rank: int, local_size: int):
        self.rank, self.size, self.local_rank, self.local_size = rank, size, local_rank, local_size
        self._nccl: Any = None

    def set_device(self, device: torch.device) -> None:
        """Chooses NCCL if each rank has a GPU for itself. Tensors on a shared GPU, or without NCCL (Windows), go through the
        host."""
        if self._nccl is not None:
            return
        unavailable = device.type != "cuda" or device.index != self.local_rank or not dist.is_nccl_available()
        if not self.any(unavailable):
            with _explained_failures():
                self._nccl = dist.new_group(backend="nccl", timeout=PATIENCE)

    def sum_(self, tensor: Tensor) -> Tensor:
        self._run_collective(tensor, dist.all_reduce)
        return tensor

    def broadcast_(self, tensor: Tensor) -> None:
        self._run_collective(tensor, lambda x, group: dist.broadcast(x, 0, group))

    def gather_rows(self, x: Tensor) -> Tensor:
        whole = x.new_zeros(self.size, *x.shape)
        whole[self.rank] = x
        return self.sum_(whole).flatten(0, 1)

    def mean_(self, means: Tensor) -> None:
        values, count = means[:-1], means[-1]
        values *= count
        self.sum_(means)
        values /= count.clamp(min=1.0)

    def _run_collective(self, tensor: Tensor, collective: Callable[..., Any]) -> None:
        with _explained_failures():
            if tensor.device.type == "cpu" or self._nccl is not None:
                collective(tensor, group=None if tensor.device.type == "cpu" else self._nccl)
                self.meetings += 1
            else:
                host = tensor.cpu()
                collective(host, group=None)
                self.meetings += 1
                tensor.copy_(host)

    def any(self, flag: bool) -> bool:
        return bool(self.sum_(torch.tensor(int(flag))))

    def all_gather(self, value: T) -> list[T]:
        values: list[Any] = [None] * self.size
        with _explained_failures():
            dist.all_gather_object(values, value)
        return values

    def scatter(self, values: Sequence[T] | None) -> T:
        received: list[Any] = [None]
        with _explained_failures():
            dist.scatter_object_list(received, None if values is None else list(values), src=0)
        return received[0]

    def request(self) -> list[Any]:
        self._first_requests(True)
        answers = [None] * self.size
        with _explained_failures():
            dist.gather_object(None, answers, dst=0)
        return answers[1:]

    def serve_requests(self, answer: Callable[[], Any]) -> None:
        while self._first_requests(False):
            value = answer()
            with _explained_failures():
                dist.gather_object(value, dst=0)

    def _first_requests(self, requests: bool) -> bool:
        """Returns the flag of the first rank on all ranks."""
        flag = torch.tensor(int(requests))
        self.broadcast_(flag)
        return bool(flag)


@contextmanager
def init_ranks() -> Iterator[Ranks]:
    """Joins the ranks that torchrun started; without torchrun this process is alone."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1 or "LOCAL_RANK" not in os.environ:
        yield ALONE
        return
    if not dist.is_available():
        raise RanksError("this torch was built without torch.distributed: start one process, without torchrun")
    with _explained_failures():
        dist.init_process_group("gloo", timeout=PATIENCE)  # for Python values and CPU tensors, whatever the device
    try:
        if dist.get_rank() > 0:  # the first rank logs for all; failures here are in its counters too
            logging.getLogger("wavedash").setLevel(logging.ERROR)
        yield SeveralRanks(dist.get_rank(), size, *(int(os.environ[name]) for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE")))
    finally:
        dist.destroy_process_group()


@contextmanager
def _explained_failures() -> Iterator[None]:
    """Turns the errors of torch.distributed into a message that says what happened."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).splitlines()[0].split(". ")[0]
        raise RanksError("another process of this run has ended or cannot be reached; its own message says why "
                         f"({reason})") from error
