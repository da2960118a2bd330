"""Plain values are written as strict JSON that reads back exactly; any JSON reader can open the files.

JSON has no NaN and no infinity, yet both are legitimate values of a run (a best return that does not exist yet). They are
written as `{"__float__": "nan"}`. Whatever else JSON would change silently (integer keys, NumPy scalars) is refused with the
place where it was found; only tuples come back as lists.
"""
from __future__ import annotations

import json
import math
from typing import Any, NoReturn

TAG = "__float__"
NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class NotPlainError(ValueError):
    """A value cannot be saved as JSON; the message says which and where."""


def to_json(value: Any, *, indent: int | None = 1) -> str:
    try:
        return json.dumps(_encode(value, "$"), indent=indent, allow_nan=False)
    except RecursionError:
        raise NotPlainError("nested too deeply, or inside itself") from None


def from_json(text: str | bytes) -> Any:
    """Raises ValueError for anything that is not strict JSON, however deeply nested."""
    try:
        return json.loads(text, object_hook=_decode, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _encode(value: Any, where: str) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {TAG: str(float(value))}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_encode(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str) or key == TAG:
                raise NotPlainError(f"{where}: the key {key!r} cannot be saved: use a string other than {TAG!r}")
        return {key: _encode(item, f"{where}.{key}") for key, item in value.items()}
    raise NotPlainError(f"{where}: a {type(value).__name__} cannot be saved as JSON: turn it into numbers, strings, lists and "
                        "dicts, or save it as a tensor")


def _decode(value: dict[str, Any]) -> Any:
    if TAG not in value:
        return value
    try:
        return NON_FINITE[value[TAG]]
    except (KeyError, TypeError):
        raise ValueError(f"{value} is not a float") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
