"""Spaces as plain JSON: a checkpoint describes observations and actions without naming code."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from wavedash.errors import UserError

LARGEST_BOX = 2**26
"""The most numbers of an observation. A description of a larger space was not written by this package."""


def space_to_json(space: Space[Any]) -> dict[str, Any]:
    if isinstance(space, spaces.Box):
        low, high = (_compact(bound) for bound in (space.low, space.high))
        return {"kind": "box", "shape": list(space.shape), "dtype": str(space.dtype), "low": low, "high": high}
    if isinstance(space, spaces.Discrete):
        return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        return {"kind": "multi_discrete", "nvec": space.nvec.tolist(), "start": space.start.tolist()}
    if isinstance(space, spaces.MultiBinary):
        return {"kind": "multi_binary", "shape": list(space.shape)}
    if isinstance(space, spaces.Dict):
        return {"kind": "dict", "spaces": {key: space_to_json(part) for key, part in space.spaces.items()}}
    raise UserError(f"the space {space} cannot be described: use Box, Discrete, MultiDiscrete, MultiBinary or a Dict of these")


def space_from_json(data: dict[str, Any]) -> Space[Any]:
    kind = data["kind"]
    if kind == "box":
        dtype: Any = np.dtype(data["dtype"])
        if math.prod(data["shape"]) > LARGEST_BOX:
            raise ValueError(f"the space {data['shape']} is larger than any that can be learned from")
        low, high = (np.broadcast_to(np.asarray(data[name], dtype), data["shape"]) for name in ("low", "high"))
        return spaces.Box(low, high, tuple(data["shape"]), dtype=dtype.type)
    if kind == "discrete":
        return spaces.Discrete(data["n"], start=data["start"])
    if kind == "multi_discrete":
        return spaces.MultiDiscrete(np.asarray(data["nvec"]), start=np.asarray(data["start"]))
    if kind == "multi_binary":
        return spaces.MultiBinary(data["shape"] if len(data["shape"]) > 1 else data["shape"][0])
    return spaces.Dict({key: space_from_json(part) for key, part in data["spaces"].items()})


def most(space: Space[Any]) -> np.ndarray[Any, Any] | None:
    """The greatest index of an action, the least being 0; None where actions are continuous."""
    if isinstance(space, spaces.Discrete):
        return np.asarray(space.n - 1)
    if isinstance(space, spaces.MultiDiscrete):
        return np.asarray(space.nvec - 1)
    return np.asarray(1) if isinstance(space, spaces.MultiBinary) else None


def _compact(bound: np.ndarray[Any, Any]) -> Any:
    """One number where all bounds are equal: image spaces would otherwise list every pixel. Infinities become strings."""
    values = bound.reshape(-1)[:1] if bound.size and np.all(bound == bound.reshape(-1)[0]) else bound
    return _stringify(values.item() if values.size == 1 else values.tolist())


def _stringify(value: Any) -> Any:
    if isinstance(value, list):
        return [_stringify(v) for v in value]
    return str(value) if value in (float("inf"), float("-inf")) else value
