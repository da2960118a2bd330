"""Launches of a kernel over a batch: one on a GPU; on a CPU, where a launch runs in the thread of its caller, one per piece."""
from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import torch
import warp as wp

from wavedash.threads import cores
from wavedash.warp_package import log_if_compiling

PIECES = 4
"""Pieces of a batch for each thread of a CPU: items cost differently, and a thread that is done takes the next piece"""


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="sensors")


class Launch:
    """A kernel over the items of a batch, with fixed memory. The kernel takes the number of its first item, then `inputs`; the
    first axis of its threads is that of items, `inner` are the others.

    There is no host sync on a GPU, and a call can be captured in a CUDA graph. `threads`: of a CPU; by default as
    wavedash/threads.py decides."""

    def __init__(self, kernel: Any, items: int, inner: Sequence[int], inputs: Sequence[Any], device: torch.device,
                 threads: int | None = None, least: int = 1) -> None:
        """`least`: items of a piece, so many that they take longer than to wake up a thread, about 50 microseconds."""
        self.device, self.items, self.inner, self.least = device, items, tuple(inner), least
        self.threads = 1 if device.type == "cuda" else threads or cores()
        with log_if_compiling("the sensors of the robot", f"{device}"):
            self._launches = [wp.launch(kernel, dim=(items, *inner), inputs=[0, *inputs], device=wp.device_from_torch(device),
                                        record_cmd=True) for _ in range(1 if self.threads == 1 else PIECES * self.threads)]

    def __call__(self, items: int | None = None) -> None:
        """Runs the kernel over the first `items` items, by default over all."""
        count = self.items if items is None else items
        if self.device.type == "cuda":
            # Torch's stream will do: Warp reads nothing but its handle.
            self._launches[0].launch(torch.cuda.current_stream(self.device))
        elif count:
            self._on_threads(count)

    def _on_threads(self, count: int) -> None:
        pieces = min(len(self._launches), -(-count // self.least))
        ends = [count * i // pieces for i in range(pieces + 1)]
        for launch, first, end in zip(self._launches, ends, ends[1:], strict=False):
            launch.set_param_at_index(0, first)
            launch.set_dim((end - first, *self.inner))
        left = deque(self._launches[:pieces])

        def work() -> None:
            while left:
                try:
                    launch = left.popleft()
                except IndexError:  # another thread was faster
                    return
                launch.launch()

        helpers = [_pool(self.threads - 1).submit(work) for _ in range(min(self.threads, pieces) - 1)]
        work()
        for helper in helpers:
            if not helper.cancel():  # one that has not started yet has nothing left to do
                helper.result()
