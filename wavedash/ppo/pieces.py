"""The gradient of a minibatch on several CPU threads: a sum over pieces of it.

Torch's own threads share each operation and meet at its end, a hundred times in a minibatch; beside a busy program one of them
is without a core and the others wait for it, so that training kept 40 % of its speed. Here a thread takes a piece through all
operations, then the next piece; threads meet once in a minibatch, and who has no core takes fewer pieces.

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
"""Relative sizes of pieces. The last ones are smaller, so that threads come to their ends together: whether there are 2, 4, 8
or 16 of them, and nearly so if one of them is slower."""
MOST_LARGE = 14


def piece_bounds(samples: int, policy: ActorCritic) -> list[int]:
    """Where the pieces of a minibatch of so many samples, or sequences of them, begin and end."""
    cost = cost_of(samples * (policy.sequence_length or 1), policy.config)
    if cost < SMALL_MATRIX or policy.compiled or next(policy.parameters()).device.type != "cpu":
        return [0, samples]
    large = next((n for n in (2, 6) if cost < 4 * n * SMALL_MATRIX), MOST_LARGE)
    sizes = [LARGE] * large + [*TAPER]
    return sorted({samples * end // sum(sizes) for end in accumulate(sizes, initial=0)})


class Pieces:
    """Works on pieces side by side. Each has a policy whose weights are the real one's, and whose gradients are its own."""

    def __init__(self, policy: ActorCritic, optimizer: FlatAdamW) -> None:
        self.message, self.extra = optimizer.message, len(optimizer.extra)
        with torch.inference_mode(False):
            self.rows = self.message.new_zeros(MOST_LARGE + len(TAPER), len(self.message))  # memory is taken when written to
            self.policies = [_twin(policy, optimizer, row) for row in self.rows]
        self.pool = ThreadPoolExecutor(len(self.rows), "update", initializer=torch.set_num_threads, initargs=(1,))

    def add(self, pieces: Sequence[T], work: Callable[[ActorCritic, T, Tensor], None]) -> None:
        """Adds to the optimiser's message what `work` adds to the gradients of the policy and to the numbers behind them, which
        it is handed."""
        rows = self.rows[: len(pieces)]
        behind = self.rows.shape[1] - self.extra
        inference = torch.is_inference_mode_enabled()

        def one(k: int) -> None:
            with torch.inference_mode() if inference else torch.no_grad():  # a thread has modes of its own
                rows[k].zero_()
                work(self.policies[k], pieces[k], rows[k, behind:])

        side_by_side(one, len(pieces), self.pool, compute_threads())
        self.message += rows.sum(0)


def side_by_side(one: Callable[[int], None], count: int, pool: ThreadPoolExecutor, threads: int) -> None:
    """one(0) ... one(count - 1), begun in this order, each by the next of `threads` threads that is free; the caller is one of
    them. Nothing of it goes on afterwards, whatever was raised."""
    left = iter(range(count))  # shared: `next` is one step of the interpreter, so no number is taken twice

    def work() -> None:
        for k in left:
            one(k)

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


def _twin(policy: ActorCritic, optimizer: FlatAdamW, row: Tensor) -> ActorCritic:
    """The same policy over the same memory, but for its gradients: they are in `row`, placed as in the optimiser's."""
    shared: dict[int, Tensor] = {id(buffer): buffer for buffer in policy.buffers()}
    for p in policy.parameters():
        shared[id(p)] = twin = nn.Parameter(p.data, p.requires_grad)
        if p.grad is not None:
            begin = p.grad.storage_offset() - optimizer.gradient.storage_offset()
            twin.grad = row[begin : begin + p.numel()].view_as(p)
    return deepcopy(policy, shared)
