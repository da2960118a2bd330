"""Warp programs of others, such as MuJoCo Warp, on torch's stream and with torch's memory.

They allocate work memory in every step. Memory of torch's allocator belongs to the graph when torch captures one, is
counted with torch's, and is not used again before the work of its stream is done.
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
import warp as wp


class TorchMemory:
    """An allocator for Warp, over that of torch, for the stream that is torch's current one."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def allocate(self, size_in_bytes: int) -> int:
        return int(torch.cuda.caching_allocator_alloc(size_in_bytes, self.device))

    def deallocate(self, ptr: int, size_in_bytes: int) -> None:
        torch.cuda.caching_allocator_delete(ptr)  # type: ignore[no-untyped-call]


@contextmanager
def on_torch(device: torch.device) -> Iterator[None]:
    """Puts what Warp launches and allocates in this context on the device, its launches on torch's current stream. There is no
    host sync, and a CUDA graph may be captured."""
    if device.type == "cpu":
        with wp.ScopedDevice("cpu"):
            yield
        return
    stream = _stream(device, torch.cuda.current_stream(device).cuda_stream)
    # Without waiting for Warp's own stream: nothing is launched there, and a stream that is captured must not wait for another.
    with wp.ScopedStream(stream, sync_enter=False), wp.ScopedAllocator(stream.device, TorchMemory(device)):
        yield


@cache
def _stream(device: torch.device, handle: int) -> Any:
    """Torch's stream as one of Warp's. Kept, because Warp forgets a stream when one of the objects for it is deleted."""
    return wp.Stream(wp.device_from_torch(device), cuda_stream=handle)
