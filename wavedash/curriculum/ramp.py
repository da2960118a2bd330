"""Ramps: numbers of a phase that move evenly with the steps of the run, `{from: 0, to: 1, over: 5_000_000}`."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from wavedash.errors import UserError
from wavedash.yaml_text import Key

KEYS = frozenset({"from", "to", "over"})


def is_ramp(value: Any) -> bool:
    """Whether a value is a ramp, or was meant to be one."""
    return isinstance(value, Mapping) and bool(value) and value.keys() <= KEYS


def value_at(value: Any, steps: int) -> Any:
    """Returns the value with every ramp in it, at any depth, replaced by its number after so many steps of the ramp."""
    if is_ramp(value):
        return _number_at(value, steps)
    if isinstance(value, Mapping):
        return {name: value_at(item, steps) for name, item in value.items()}
    return [value_at(item, steps) for item in value] if isinstance(value, list) else value


def ramps_in(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yields every ramp in a value."""
    return (ramp for _, ramp in ramps_by_key(value))


def ramps_by_key(value: Any, key: Key = ()) -> Iterator[tuple[Key, Mapping[str, Any]]]:
    """Yields every ramp in a value, with its key if that of the value is `key`."""
    if is_ramp(value):
        yield key, value
    elif isinstance(value, Mapping | list):
        for name, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from ramps_by_key(item, (*key, name))


def check_ramp(ramp: Mapping[str, Any]) -> None:
    """Raises UserError unless it has two numbers and the steps between them."""
    numbers = [x for x in ramp.values() if isinstance(x, int | float) and not isinstance(x, bool) and isfinite(x)]
    if ramp.keys() != KEYS or len(numbers) < len(KEYS) or ramp["over"] <= 0:
        raise UserError(f"a ramp needs numbers for from and to, and steps above 0 for over, such as "
                        f"{{from: 0, to: 1, over: 5_000_000}}; got {dict(ramp)}")


def _number_at(ramp: Mapping[str, Any], steps: int) -> float:
    check_ramp(ramp)
    first, last = float(ramp["from"]), float(ramp["to"])
    progress = min(max(steps / ramp["over"], 0.0), 1.0)
    return last if progress == 1.0 else first + (last - first) * progress
