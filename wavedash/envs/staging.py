"""Staging: the way between arrays on the host and tensors on a GPU, one copy each way per step.

A copy during which the host goes on needs page-locked memory, and however small it is, it has to be launched. So everything
that a step returns is packed into one page-locked buffer and crosses in one asynchronous copy. Actions come the other way; they
are the only thing that is waited for, and that is a wait for their copy, not for the device.
"""
from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from wavedash.envs.host import Array

ALIGNMENT = 64  # bytes: every field starts where any type may


class Staging:
    """Between environments on the host and a learner on `device`."""

    def __init__(self, device: torch.device, action: Array, fields: Sequence[Array]) -> None:
        """`action`, `fields`: arrays like those that will cross."""
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
        """The first of the fields, or all, as tensors on the device that nobody else writes to. Does not wait for the copy."""
        if self._locked:
            # The buffer may still be on its way since the last step. Not so if an action came since: then this is no wait.
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
        """The action on the host, once it has arrived there. Overwritten by the next."""
        crosses = self._locked and action.is_cuda
        self._action.copy_(action, non_blocking=crosses)
        if crosses:
            self._arrived.record(torch.cuda.current_stream(self._device))
            self._arrived.synchronize()
        return self._action.numpy()

    def _unpacked(self, buffer: Tensor, count: int) -> list[Tensor]:
        """Views of the first fields."""
        parts = zip(self._starts[:count], self._sizes, self._types, self._shapes, strict=False)
        return [buffer[start : start + size].view(dtype).view(shape) for start, size, dtype, shape in parts]
