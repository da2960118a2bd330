"""StateReader: writes RocketSim's state objects into records, every number of all of them at once.

Such an object holds RocketSim's own struct as it is in memory. To read that is several times as fast as to ask for eighty
attributes one by one, which alone would cost a quarter of the physics. Where each value lies in it is found out by looking for
the values of some objects in their memory, so no compiler's layout is assumed. If they are not found, attributes are read.
"""
from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from wavedash.rocket.rocketsim.fields import BALL_VALUES, CAR_VALUES, FLAGS, HIT_VECTORS, SCALARS, VECTORS, Value
from wavedash.rocket.rocketsim.package import rocketsim
from wavedash.rocket.rocketsim.record import Array, RecordLayout

SAMPLES = 32
"""So many that no other byte of an object is by chance the same as a flag in all of them"""
LOWEST = 4096
"""No object lies below this address"""


class StateReader:
    """Of n arenas with C seats into their records [n, R]. `by_attributes`: does not look into memory."""

    def __init__(self, layout: RecordLayout, records: Array, by_attributes: bool = False) -> None:
        n, seats = len(records), layout.seats
        offsets = None if by_attributes else find_values()
        self._open = _in_memory if offsets else _copied
        floats, numbers, ticks, flags, was_hit = _columns(layout, offsets or (_packed(BALL_VALUES), _packed(CAR_VALUES)))
        words, bytes_ = [*floats, *numbers, *ticks], [*flags, *was_hit]
        self._word_object, self._word_offset = np.array([c.object for c in words]), np.array([c.offset // 4 for c in words])
        self._byte_object, self._byte_offset = np.array([c.object for c in bytes_]), np.array([c.offset for c in bytes_])
        self._word_place, self._byte_place = np.array([c.place // 4 for c in words]), np.array([c.place for c in flags])
        self._record_words, self._record_bytes = records.view(np.uint32), records

        self._words = np.empty((n, len(words)), np.uint32)
        self._flags = np.empty((n, len(bytes_)), np.uint8)
        self._numbers = self._words[:, len(floats):]  # [n, 1 + 3 C]: of cars, then ticks, as unsigned words
        self._signed = self._numbers.view(np.int32)
        self._ticks, self._was_hit = self._signed[:, len(numbers):], self._flags[:, len(flags):]  # [n, 2 C]
        self._offsets = np.zeros((n, 1 + 3 * seats), np.uint32)

    def set_offsets(self, arena: int, number: int, tick: int) -> None:
        """What is to be taken off RocketSim's numbers of cars to get seats, and off its ticks to get those of the episode."""
        split = self._offsets.shape[1] - self._ticks.shape[1]
        self._offsets[arena, :split], self._offsets[arena, split:] = number, tick % 2**32

    def write(self, states: Sequence[Any]) -> None:
        """Ball and C cars of the first arena, of the second..."""
        words, bytes_, starts = self._open(states)
        starts = starts.reshape(len(self._words), -1)  # [n, 1 + C]
        np.take(words, (starts >> 2)[:, self._word_object] + self._word_offset, out=self._words, mode="clip")
        np.take(bytes_, starts[:, self._byte_object] + self._byte_offset, out=self._flags, mode="clip")
        self._numbers -= self._offsets  # of ticks the lower 32 bits are enough: what is left of them fits
        np.maximum(self._signed, -1, out=self._signed)
        self._ticks[self._was_hit == 0] = -1
        self._record_words[:, self._word_place] = self._words
        self._record_bytes[:, self._byte_place] = self._flags[:, :len(self._byte_place)]


class _Column(NamedTuple):
    """A value: of which of the 1 + C objects of an arena, where in it, and its place in the record."""

    object: int
    offset: int
    place: int


def _columns(layout: RecordLayout, offsets: tuple[list[int], list[int]]) -> tuple[list[_Column], ...]:
    """Floats; numbers of cars; ticks; flags; and for each tick whether it counts."""
    kinds: dict[str, list[_Column]] = {}
    ball, cars = (zip(values, where, strict=True) for values, where in zip((BALL_VALUES, CAR_VALUES), offsets, strict=True))
    for value, offset in ball:
        kinds.setdefault(value.code, []).append(_Column(0, offset, layout.place("ball", value.field, value.position)))
    for value, offset in cars:
        for seat in range(layout.seats):
            place = layout.place("cars", value.field, value.position, seat) if value.field else -1
            kinds.setdefault(value.code if value.field else "hit", []).append(_Column(1 + seat, offset, place))
    return kinds["f"], kinds["I"], kinds["Q"], kinds["?"], kinds["hit"] * 2


def _in_memory(states: Sequence[Any]) -> tuple[Array, Array, Array]:
    """Words and bytes of memory, and where each of the objects starts in it, in bytes."""
    return ALL_WORDS, ALL_BYTES, np.fromiter(map(id, states), np.int64, len(states)) - LOWEST


class _AllMemory:
    """The memory of this process as an array. Nothing of it is touched before it is indexed."""

    def __init__(self, dtype: str) -> None:
        self.__array_interface__ = {
            "version": 3, "data": (LOWEST, True), "typestr": dtype, "shape": (2**48 // np.dtype(dtype).itemsize,),
        }


ALL_WORDS, ALL_BYTES = np.asarray(_AllMemory("<u4")), np.asarray(_AllMemory("|u1"))


def _copied(states: Sequence[Any]) -> tuple[Array, Array, Array]:
    """The same from a copy, read attribute by attribute."""
    width = -(-(_packed(CAR_VALUES)[-1] + 1) // 4) * 4
    copy = bytearray(width * len(states))
    for row, state in enumerate(states):
        values = BALL_VALUES if hasattr(state, "last_hit_car_id") else CAR_VALUES
        codes = "<" + "".join(value.code for value in values)
        struct.pack_into(codes, copy, row * width, *(value.of(state) for value in values))
    return np.frombuffer(copy, np.uint32), np.frombuffer(copy, np.uint8), np.arange(len(states)) * width


def _packed(values: Sequence[Value]) -> list[int]:
    """Where each of the values is if they are written one after the other."""
    return [struct.calcsize("<" + "".join(value.code for value in values[:i])) for i in range(len(values))]


@cache
def find_values() -> tuple[list[int], list[int]] | None:
    """Where BALL_VALUES and CAR_VALUES are in RocketSim's objects, in bytes from their start. None if that cannot be said."""
    ball = _find(BALL_VALUES, [sample for sample, _ in _samples()])
    car = _find(CAR_VALUES, [sample for _, sample in _samples()])
    return (ball, car) if ball and car else None


def _find(values: Sequence[Value], samples: Sequence[Any]) -> list[int] | None:
    """None unless there is exactly one place for each."""
    memory = np.array([np.frombuffer(ctypes.string_at(id(s), type(s).__basicsize__), np.uint8) for s in samples])
    offsets = []
    for value in values:
        wanted = np.array([np.frombuffer(struct.pack("<" + value.code, value.of(s)), np.uint8) for s in samples])
        windows = np.lib.stride_tricks.sliding_window_view(memory, wanted.shape[1], axis=1)
        places = np.flatnonzero((windows == wanted[:, None]).all(axis=(0, 2)))
        if len(places) != 1 or places[0] % min(wanted.shape[1], 4):
            return None
        offsets.append(int(places[0]))
    return offsets


@cache
def _samples() -> list[tuple[Any, Any]]:
    """States of balls and cars in which every value is random."""
    rs, dice = rocketsim(), np.random.default_rng(0)
    arena = rs.Arena(rs.GameMode.THE_VOID)
    car, samples = arena.add_car(0), []

    def set_vectors(thing: Any, names: Sequence[str]) -> None:
        for name in names:
            setattr(thing, name, rs.Vec(*dice.normal(size=3).tolist()))

    for _ in range(SAMPLES):
        ball_state, car_state, hit = rs.BallState(), rs.CarState(), rs.BallHitInfo()
        set_vectors(ball_state, ["pos", "vel", "ang_vel"])
        set_vectors(car_state, list(VECTORS.values()))
        set_vectors(hit, list(HIT_VECTORS.values()))
        ball_state.rot_mat, car_state.rot_mat = (rs.RotMat(*dice.normal(size=9).tolist()) for _ in range(2))
        ball_state.last_hit_car_id, car_state.car_contact_id = dice.integers(2**31, size=2).tolist()
        hit.tick_count_when_hit, hit.tick_count_when_extra_impulse_applied = dice.integers(2**62, size=2).tolist()
        hit.is_valid, car_state.ball_hit_info = bool(dice.integers(2)), hit
        car_state.wheels_with_contact = (dice.integers(2, size=4) > 0).tolist()
        for name in SCALARS.values():
            setattr(car_state, name, dice.normal())
        for name in FLAGS.values():
            setattr(car_state, name, bool(dice.integers(2)))
        car_state.ball_hit_info = hit
        arena.ball.set_state(ball_state)
        car.set_state(car_state)
        samples.append((arena.ball.get_state(), car.get_state()))
    return samples
