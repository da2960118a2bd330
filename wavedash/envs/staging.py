"""Staging: moves arrays on the host to tensors on a GPU and back, with one copy each way per step.

An asynchronous copy needs page-locked memory, and each copy costs a launch, however small it is. So everything that a step
returns is packed into one page-locked buffer and copied at once. Actions are copied the other way. Only that copy is waited
for, not the device.
"""
from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from wavedash.envs.host import Array

ALIGNMENT = 64  # bytes: any type may start there


class Staging:
    """Buffers between environments on the host and a learner on `device`."""

    def __init__(self, device: torch.device, action: Array, fields: Sequence[Array]) -> None:
        """`action` and `fields` are arrays of the shapes and types that will be copied."""
        self._device = device
        self._locked = device.type == "cuda"
        self._shapes = [field.shape for field in fields]
        self._types = [torch.from_numpy(np.empty(0, field.dtype)).dtype for field in fields]
        self._sizes = [field.nbytes for field in fields]
        self._starts = [0, *accumulate(-(-size // ALIGNMENT) * ALIGNMENT for size in self._sizes)]
        self._host = torch.empty(self._starts[-1], dtype=torch.uint8, pin_memory=self._locked)
        self._packed = [part.numpy() for part in self._unpacked(self._host, len(fields))]
        self._action = torch.from_numpy(action).clone()
        if self._locked:
            self._action = self._action.pin_memory()
            self._sent, self._arrived = torch.cuda.Event(), torch.cuda.Event()  # type: ignore[no-untyped-call]

    def send(self, arrays: Sequence[Array]) -> list[Tensor]:
        """The first fields, or all, as new tensors on the device. It does not wait for the copy."""
        if self._locked:
            # The copy of the last step may still be reading the buffer. Once an action has arrived since, it is not.
            self._sent.synchronize()
        for place, array in zip(self._packed, arrays, strict=False):
            np.copyto(place, array)
        size = self._starts[len(arrays)]
        there = torch.empty(size, dtype=torch.uint8, device=self._device)
        there.copy_(self._host[:size], non_blocking=self._locked)
        if self._locked:
            self._sent.record(torch.cuda.current_stream(self._device))
        return self._unpacked(there, len(arrays))

    def receive(self, action: Tensor) -> Array:
        """The action on the host, once it has arrived there. The next call overwrites it."""
        crosses = self._locked and action.is_cuda
        self._action.copy_(action, non_blocking=crosses)
        if crosses:
            self._arrived.record(torch.cuda.current_stream(self._device))
            self._arrived.synchronize()
        return self._action.numpy()

    def _unpacked(self, buffer: Tensor, count: int) -> list[Tensor]:
        """Views of the first `count` fields."""
        parts = zip(self._starts[:count], self._sizes, self._types, self._shapes, strict=False)
        return [buffer[start : start + size].view(dtype).view(shape) for start, size, dtype, shape in parts]
