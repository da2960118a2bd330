"""The state at the beginning of an iteration, kept while the iteration changes it.

Whatever breaks an iteration off (a second Ctrl-C, an environment, a listener), this is what is saved: the resumed run does the
iteration again and is, bit for bit, the run that was never stopped. Everything is copied on its device, without a host sync.
The rollout buffer is not copied: the one rollout that an iteration overwrites is the one that it overwrites again.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from torch import Tensor


class Beginning(NamedTuple):
    """Copies of what `Learner.state` is made of."""

    policy: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    learner: dict[str, Tensor]
    env: Callable[[], dict[str, Tensor]]
    listeners: dict[str, dict[str, Any]]
    counters: dict[str, Any]


def copies(tensors: Mapping[str, Tensor], flat: Tensor, flat_copy: Tensor) -> dict[str, Tensor]:
    """A copy of each tensor; for a view of `flat`, which has been copied already, the same view of that copy."""
    home = flat.untyped_storage().data_ptr()
    return {
        name: flat_copy.as_strided(x.shape, x.stride(), x.storage_offset())
        if x.untyped_storage().data_ptr() == home else x.detach().clone()
        for name, x in tensors.items()
    }
