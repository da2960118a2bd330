"""On a CPU, threads compute the gradient of a minibatch as a sum over pieces of it.

Torch's own threads share each operation and meet at its end, a hundred times in a minibatch. When another program takes a core
away, all wait for the thread that lost it: training kept 40 % of its speed. Here a thread takes one piece through all
operations, then the next; threads meet once in a minibatch, and a thread without a core takes fewer pieces.

Pieces depend on the configuration alone. Each has a gradient of its own, and these are added in their order. So results are the
same bit for bit whatever the number of threads, and however busy the machine is.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from copy import deepcopy
from itertools import accumulate
from typing import TypeVar

import torch
from torch import Tensor, nn

from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.optimizer import FlatAdamW
from wavedash.threads import SMALL_MATRIX, compute_threads, cost_of

T = TypeVar("T")

LARGE, TAPER = 4, (3, 3, 1, 1)
"""Relative sizes of pieces. The last ones are smaller, so that 2, 4, 8 or 16 threads all finish at about the same time, even if
one of them is slower."""
MOST_LARGE = 14


def piece_bounds(samples: int, policy: ActorCritic) -> list[int]:
    """Returns where the pieces of a minibatch of so many samples or sequences begin and end."""
    cost = cost_of(samples * (policy.sequence_length or 1), policy.config)
    if cost < SMALL_MATRIX or policy.compiled or next(policy.parameters()).device.type != "cpu":
        return [0, samples]
    large = next((n for n in (2, 6) if cost < 4 * n * SMALL_MATRIX), MOST_LARGE)
    sizes = [LARGE] * large + [*TAPER]
    return sorted({samples * end // sum(sizes) for end in accumulate(sizes, initial=0)})


class Pieces:
    """Works on pieces in parallel. Each piece has a replica of the policy that shares its weights and has its own gradients."""

    def __init__(self, policy: ActorCritic, optimizer: FlatAdamW) -> None:
        self.total, self.extra = optimizer.reduce_buffer, len(optimizer.extra)
        with torch.inference_mode(False):
            self.rows = self.total.new_zeros(MOST_LARGE + len(TAPER), len(self.total))  # memory is allocated on first write
            self.policies = [_replica(policy, optimizer, row) for row in self.rows]
        self.pool = ThreadPoolExecutor(len(self.rows), "update", initializer=torch.set_num_threads, initargs=(1,))

    def add(self, pieces: Sequence[T], work: Callable[[ActorCritic, T, Tensor], None]) -> None:
        """Calls `work(policy, piece, extra)` for every piece. What it adds to the gradients of that policy and to `extra` is
        added to the optimiser's gradient and extra numbers."""
        rows = self.rows[: len(pieces)]
        gradient_size = self.rows.shape[1] - self.extra
        inference = torch.is_inference_mode_enabled()

        def compute(k: int) -> None:
            with torch.inference_mode() if inference else torch.no_grad():  # these modes are per thread
                rows[k].zero_()
                work(self.policies[k], pieces[k], rows[k, gradient_size:])

        run_in_threads(compute, len(pieces), self.pool, compute_threads())
        self.total += rows.sum(0)


def run_in_threads(job: Callable[[int], None], count: int, pool: ThreadPoolExecutor, threads: int) -> None:
    """Runs job(0) ... job(count - 1), begun in this order, each in the next free one of `threads` threads; the caller's is one
    of them. When it returns or raises, no job is running."""
    left = iter(range(count))  # shared: `next` is one step of the interpreter, so no number is taken twice

    def work() -> None:
        for k in left:
            job(k)

    helpers = [pool.submit(work) for _ in range(min(threads, count) - 1)]
    try:
        work()
    finally:
        for _ in left:
            pass
        started = [helper for helper in helpers if not helper.cancel()]
        wait(started)
    for helper in started:
        helper.result()


def _replica(policy: ActorCritic, optimizer: FlatAdamW, row: Tensor) -> ActorCritic:
    """Returns a policy that shares all tensors except gradients: those are views of `row`, placed as in the optimiser's."""
    shared: dict[int, Tensor] = {id(buffer): buffer for buffer in policy.buffers()}
    for p in policy.parameters():
        shared[id(p)] = copy = nn.Parameter(p.data, p.requires_grad)
        if p.grad is not None:
            begin = p.grad.storage_offset() - optimizer.gradient.storage_offset()
            copy.grad = row[begin : begin + p.numel()].view_as(p)
    return deepcopy(policy, shared)
