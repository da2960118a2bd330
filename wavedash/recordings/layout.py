"""Layout: which fields the record of a frame has, how they are stored, and how numbers become records and back.

A field is stored as small numbers times a scale. Readers find fields by their names, so that a later version may add some.
"""
from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wavedash.errors import UserError

TYPES = {"i8": "<i1", "u8": "<u1", "i16": "<i2", "u16": "<u2", "i32": "<i4", "u32": "<u4", "f32": "<f4"}
"""The types of stored numbers and what numpy calls them: all are little-endian"""
MOST_FIELDS = 256
MOST_DIMENSIONS = 4
MOST_BYTES = 1 << 20
"""The largest record"""
NAME = re.compile(r"[a-z][a-z0-9_]{0,63}(\.[a-z][a-z0-9_]{0,63}){0,3}")

Records = NDArray[Any]
"""[T]: a structured array with one record per frame"""


class RecordingError(UserError):
    """A recording cannot be read or written; the message says why and what to do."""


@dataclass(frozen=True)
class Field:
    """One field of a record: value = stored number * scale."""

    name: str
    type: str
    shape: tuple[int, ...] = ()
    scale: float = 1.0

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(TYPES[self.type])

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.type, "shape": list(self.shape), "scale": self.scale}

    @classmethod
    def from_json(cls, given: object) -> Field:
        """A field of a header. Raises RecordingError if anything about it is not as docs/recordings.md says."""
        if not isinstance(given, dict) or set(given) != {"name", "type", "shape", "scale"}:
            raise RecordingError(f"a field of a recording has name, type, shape and scale; this is one: {_short(given)}")
        name, kind, shape, scale = given["name"], given["type"], given["shape"], given["scale"]
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise RecordingError(f"the name of a field is of the form ball.position, not {_short(name)}")
        if not isinstance(kind, str) or kind not in TYPES:
            raise RecordingError(f"the type of field {name} is {_short(kind)}, and not one of {', '.join(TYPES)}")
        if not isinstance(shape, list) or len(shape) > MOST_DIMENSIONS or not all(_is_size(size) for size in shape):
            raise RecordingError(f"the shape of field {name} is {_short(shape)}, and not a list of at most {MOST_DIMENSIONS} "
                                 f"sizes from 1 to {MOST_BYTES}")
        if isinstance(scale, bool) or not isinstance(scale, (int, float)) or not 1e-30 < scale < 1e30:
            raise RecordingError(f"the scale of field {name} is {_short(scale)}, and not a positive number")
        return cls(name, kind, tuple(shape), float(scale))


@dataclass(frozen=True)
class Layout:
    """The fields of a record, which follow each other without padding."""

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        """Raises RecordingError if this is no layout."""
        if not 1 <= len(self.fields) <= MOST_FIELDS:
            raise RecordingError(f"a record of a recording has 1 to {MOST_FIELDS} fields, not {len(self.fields)}")
        if len({field.name for field in self.fields}) < len(self.fields):
            names = [field.name for field in self.fields]
            raise RecordingError(f"a record has two fields of the name {next(n for n in names if names.count(n) > 1)}")
        size = sum(math.prod(field.shape) * field.dtype.itemsize for field in self.fields)
        if size > MOST_BYTES:
            raise RecordingError(f"a record of {size:,} bytes is too large: the most is {MOST_BYTES:,}")

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The numpy type of a record."""
        return np.dtype([(field.name, field.dtype, field.shape) for field in self.fields])

    @cached_property
    def by_name(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields}

    def to_json(self) -> list[dict[str, Any]]:
        return [field.to_json() for field in self.fields]

    @classmethod
    def from_json(cls, given: object) -> Layout:
        """The layout of a header, strictly checked."""
        if not isinstance(given, list) or not 1 <= len(given) <= MOST_FIELDS:
            raise RecordingError(f"the record of a recording is a list of 1 to {MOST_FIELDS} fields")
        return cls(tuple(Field.from_json(field) for field in given))

    def encode(self, values: Mapping[str, ArrayLike], frames: int | None = None) -> Records:
        """Records [T] of the values of every field [T, *shape]. Whole numbers are rounded and clipped to what fits; NaN becomes
        0 in them. `frames`: how many, by default as many as the first field has."""
        arrays = {name: np.asarray(value) for name, value in values.items()}
        if frames is None:
            frames = len(arrays[self.fields[0].name])
        if set(arrays) != set(self.by_name):
            missing = sorted(set(self.by_name) ^ set(arrays))
            raise RecordingError(f"these fields are not in both, the record and the values: {', '.join(missing)}")
        records = np.empty(frames, self.dtype)
        for field in self.fields:
            records[field.name] = stored(field, arrays[field.name])
        return records

    def decode(self, records: Records, name: str) -> NDArray[Any]:
        """The values [T, *shape] of one field. They are float64 where a scale is applied, else as they are stored."""
        if name not in self.by_name:
            raise RecordingError(f"this recording has no field {name}: it has {', '.join(self.by_name)}")
        scale = self.by_name[name].scale
        raw = records[name]
        return raw.copy() if scale == 1.0 else raw.astype(np.float64) * scale


def stored(field: Field, values: NDArray[Any]) -> NDArray[Any]:
    """The numbers that are stored for these values."""
    if field.type == "f32":
        with np.errstate(over="ignore"):
            return (values if field.scale == 1.0 else values / field.scale).astype(field.dtype)
    limits = np.iinfo(field.dtype)
    if values.dtype.kind not in "iub" or field.scale != 1.0:
        values = np.rint(np.nan_to_num(values.astype(np.float64) / field.scale, nan=0.0, posinf=limits.max, neginf=limits.min))
    return np.clip(values.astype(np.int64) if values.dtype.kind == "b" else values, limits.min, limits.max).astype(field.dtype)


def fields(*given: tuple[str, str, Sequence[int], float]) -> tuple[Field, ...]:
    """Fields from rows of name, type, shape and scale."""
    return tuple(Field(name, kind, tuple(shape), scale) for name, kind, shape, scale in given)


def _is_size(size: object) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= MOST_BYTES


def _short(given: object) -> str:
    text = ascii(given)
    return text if len(text) <= 80 else f"{text[:77]}..."
