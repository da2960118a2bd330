"""The parts of a task together with those of other tasks, which are switched off.

A run whose phases have different tasks holds the parts of all phases from its beginning. So a change of phase changes numbers
only: parts need not be made or bound, and no CUDA graph is captured anew.

Parts are in the order in which they first appear in all tasks. If these are the tasks of all phases, the order, and with it the
names of what is saved and the random streams of starts, is the same in all phases.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Weighted = dict[str, float | dict[str, Any]]
Switched = dict[str, dict[str, Any] | None]


def united_weights(own: Weighted, all_of: Sequence[Weighted]) -> Weighted:
    """Rewards or starts; those that are not our own get weight 0, and the options of the first task that has them."""
    off = {name: {**value, "weight": 0.0} if isinstance(value, Mapping) else 0.0 for name, value in first(all_of).items()}
    return {name: _plain(own.get(name, value)) for name, value in off.items()}


def united_endings(own: Switched, all_of: Sequence[Switched]) -> Switched:
    """Endings; those that are not our own are null, and an ending that is null keeps no options."""
    return {name: own.get(name) for name in first(all_of)}


def first(all_of: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Everything by name as it appears first, in the order of appearance."""
    found: dict[str, Any] = {}
    for each in all_of:
        found |= {name: value for name, value in each.items() if name not in found}
    return found


def _plain(value: float | dict[str, Any]) -> float | dict[str, Any]:
    """A weight alone is written as a number in all tasks, so that tasks with the same options have the same keys. What is no
    number stays as it is, and is refused where the part is made."""
    if not isinstance(value, Mapping) or list(value) != ["weight"]:
        return value
    weight = value["weight"]
    # Options of parts may be anything, so that 5 has not become 5.0 among them.
    return float(weight) if isinstance(weight, int | float) and not isinstance(weight, bool) else value
