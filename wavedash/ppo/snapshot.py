"""A snapshot is a copy of the state at the beginning of an iteration, taken before the iteration changes it.

It is what is saved when the iteration is interrupted (a second Ctrl-C, an error in an environment or listener): the resumed run
does the iteration again and is, bit for bit, the run that was never stopped. Everything is copied on its device, without a host
sync. The rollout buffer is not copied: the repeated iteration overwrites the same rollout again.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from torch import Tensor


class Snapshot(NamedTuple):
    """Copies of everything in `Learner.state`, except the rollout buffer."""

    policy: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    learner: dict[str, Tensor]
    env: Callable[[], dict[str, Tensor]]
    listeners: dict[str, dict[str, Any]]
    counters: dict[str, Any]


def copies(tensors: Mapping[str, Tensor], flat: Tensor, flat_copy: Tensor) -> dict[str, Tensor]:
    """Copies each tensor. A view of `flat`, which has been copied already, becomes the same view of `flat_copy`."""
    flat_address = flat.untyped_storage().data_ptr()
    return {
        name: flat_copy.as_strided(x.shape, x.stride(), x.storage_offset())
        if x.untyped_storage().data_ptr() == flat_address else x.detach().clone()
        for name, x in tensors.items()
    }
