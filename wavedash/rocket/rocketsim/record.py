"""Records as arrays, and the layout of the memory that simulator and workers share.

The fields of a record are those of `wavedash.rocket.state`. Workers import this file, so it must not import torch.
"""
from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wavedash.envs.workers.signs_of_life import SignsOfLife

Array = NDArray[Any]
ALIGNMENT = 64  # bytes, a cache line


class Field(NamedTuple):
    """Where a field lies in a record. `stride` is the number of bytes from car to car, 0 for a field that is not per car."""

    part: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    stride: int

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class RecordLayout:
    """The layout of records of arenas with so many seats."""

    fields: tuple[Field, ...]
    seats: int
    size: int
    """Bytes of a record"""

    def views(self, records: Array) -> dict[str, dict[str, Array]]:
        """Every field of records [n, R] by part and name: [n, ...] or [n, C, ...]."""
        parts: dict[str, dict[str, Array]] = {}
        for part, name, dtype, shape, offset, stride in self.fields:
            inner = [prod(shape[i + 1:]) * np.dtype(dtype).itemsize for i in range(len(shape))]
            per_car = ((self.seats,), (stride,)) if stride else ((), ())
            parts.setdefault(part, {})[name] = np.ndarray(
                (len(records), *per_car[0], *shape), dtype, records, offset, (self.size, *per_car[1], *inner))
        return parts

    def place(self, part: str, name: str, index: int = 0, seat: int = 0) -> int:
        """The offset in a record of number `index` of a field."""
        field = next(field for field in self.fields if (field.part, field.name) == (part, name))
        return field.offset + index * np.dtype(field.dtype).itemsize + seat * field.stride

    def bytes_of(self, records: Array, part: str) -> Array:
        """The bytes of a whole part of the records: [n, bytes]."""
        fields = [field for field in self.fields if field.part == part]
        last = fields[-1].offset + fields[-1].nbytes + (self.seats - 1) * fields[-1].stride
        return records[:, fields[0].offset:last]


@dataclass(frozen=True)
class SharedArrays:
    """The arrays that simulator and workers share, for E arenas with C seats."""

    records: Array  # [E, R] uint8: what tasks read and write
    next_records: Array  # [E, R] uint8: where workers prepare the records after the step
    controls: Array  # [E, C, 8] float32: controls of the next step
    placed: Array  # [E] bool: the record was written from outside and must be loaded before the next tick
    resting: Array  # [E] bool: the arena does not tick
    done: Array  # [E] int64: number of the last step that `next_records` contains; 0: none yet
    beats: Array  # [E] int64: signs of life, see `SignsOfLife`; counted before each call of an arena
    doing: Array  # [E] int64: the entry of a process's first arena says what the process is doing

    @property
    def signs(self) -> SignsOfLife:
        """The signs of life of the process of these arenas."""
        return SignsOfLife(self.beats, self.doing)

    @classmethod
    def over(cls, buffer: Any, layout: RecordLayout, arenas: int) -> SharedArrays:
        """The arrays over a buffer of `nbytes`; they are the same in every process."""
        arrays: list[Array] = []
        end = 0
        for shape, dtype in cls._shapes(layout, arenas):
            arrays.append(np.ndarray(shape, dtype, buffer, end))
            end += _aligned(arrays[-1].nbytes)
        return cls(*arrays)

    @classmethod
    def nbytes(cls, layout: RecordLayout, arenas: int) -> int:
        return sum(_aligned(prod(shape) * np.dtype(dtype).itemsize) for shape, dtype in cls._shapes(layout, arenas))

    @staticmethod
    def _shapes(layout: RecordLayout, arenas: int) -> list[tuple[tuple[int, ...], str]]:
        return [((arenas, layout.size), "uint8"), ((arenas, layout.size), "uint8"), ((arenas, layout.seats, 8), "float32"),
                *[((arenas,), "bool")] * 2, *[((arenas,), "int64")] * 3]

    def part(self, arenas: slice) -> SharedArrays:
        return SharedArrays(self.records[arenas], self.next_records[arenas], self.controls[arenas], self.placed[arenas],
                            self.resting[arenas], self.done[arenas], self.beats[arenas], self.doing[arenas])


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
