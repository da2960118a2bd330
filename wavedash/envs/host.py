"""HostEnv: one environment that lives in this process and speaks numpy.

This file runs in worker processes, so it must not import torch: a worker then starts fast and stays small.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, SupportsFloat, runtime_checkable

import gymnasium
from numpy.typing import NDArray

Array = NDArray[Any]
HostObs = Array | Mapping[str, Array]
HostStep = tuple[HostObs, SupportsFloat | Array, bool | Array, bool | Array, Mapping[str, Any]]


@runtime_checkable
class HostEnv(Protocol):
    """An environment of `num_rows` agents that begin their episodes together. A row may end before the others; it then sits
    out, and the next episode begins when no row is left.

    With one row, observations, rewards and actions are those of the agent; with more they have a leading axis [num_rows].
    """

    num_rows: int
    observation_space: gymnasium.Space[Any]
    """The space of one row: Box or Dict of Box."""
    action_space: gymnasium.Space[Any]
    """The space of one row."""
    active: bool | Array
    """Rows that take part in the current episode; read after each reset, so team sizes may change there."""

    def reset(self, seed: int) -> HostObs:
        """Start an episode that depends on nothing but the seed."""

    def step(self, action: Any) -> HostStep:
        """Returns obs, reward, terminated, truncated, info. With several rows the flags are for all rows, or [num_rows]; those
        of a row that sits out are false."""

    def close(self) -> None: ...


def summary(value: Any) -> str:
    """A value in short, for messages."""
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) < 80 else text[:77] + '...'}"
