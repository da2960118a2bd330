"""The numbers of a RocketSim state as bytes, with the offset of each, which `StateReader` decodes for all arenas at once.

An object of RocketSim holds its own C++ struct, so a copy of the object's memory has every number in it. Reading sixty
attributes instead makes a whole step of RocketSim take about 12 % longer. The offset of each number is found by searching the
memory of random states for their values, so that no compiler's layout is assumed. If they are not found, attributes are read.
"""
from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from wavedash.rocket.rocketsim.fields import (
    BALL_COLUMNS,
    CAR_COLUMNS,
    FLAGS,
    HIT_VECTORS,
    SCALARS,
    VECTORS,
    Column,
    ball_values,
    car_values,
)
from wavedash.rocket.rocketsim.package import rocketsim

WORD = 4  # bytes
SAMPLES = 32
"""Enough random states that no other byte of an object equals a flag in all of them by chance"""

Values = Callable[[Any], list[Any]]


class StateBytes(NamedTuple):
    """How states of one type are read as bytes."""

    read: Callable[[Any], bytes]
    size: int
    """Number of bytes that `read` returns, a multiple of WORD"""
    offsets: list[int]
    """Offset of each column in these bytes"""


def ball_and_car_bytes(by_attributes: bool = False) -> tuple[StateBytes, StateBytes]:
    """How states of balls and cars are read: from memory where that is known to be right, else by attributes."""
    return (not by_attributes and from_memory()) or (packed(BALL_COLUMNS, ball_values), packed(CAR_COLUMNS, car_values))


def packed(columns: Sequence[Column], values: Values) -> StateBytes:
    """Reads states by their attributes."""
    starts = [struct.calcsize(_codes(columns[:i])) for i in range(len(columns))]
    end = struct.calcsize(_codes(columns))
    whole = struct.Struct(f"{_codes(columns)}{-end % WORD}x")
    return StateBytes(lambda state: whole.pack(*values(state)), whole.size, starts)


@cache
def from_memory() -> tuple[StateBytes, StateBytes] | None:
    """Reads states of balls and cars from memory; None if the offset of a column cannot be found for certain."""
    balls, cars = zip(*_samples(), strict=True)
    ball, car = _find(BALL_COLUMNS, ball_values, balls), _find(CAR_COLUMNS, car_values, cars)
    if ball is None or car is None:
        return None
    return (StateBytes(copier(type(balls[0])), type(balls[0]).__basicsize__, ball),
            StateBytes(copier(type(cars[0])), type(cars[0]).__basicsize__, car))


def copier(kind: type) -> Callable[[Any], bytes]:
    """A function that copies the memory of objects of exactly this type, and never a byte beyond: CPython allocates
    `__basicsize__` bytes at `id` for each, and the object lives while it is an argument."""
    size = kind.__basicsize__

    def copy(state: Any) -> bytes:
        if type(state) is not kind:
            raise TypeError(f"{type(state).__name__} instead of {kind.__name__}: its memory is not read")
        return ctypes.string_at(id(state), size)

    return copy


def _codes(columns: Sequence[Column]) -> str:
    return "<" + "".join(column.code for column in columns)


def _find(columns: Sequence[Column], values: Values, samples: Sequence[Any]) -> list[int] | None:
    """The offset of each column in the memory of the samples; None unless there is exactly one for each."""
    copy = copier(type(samples[0]))
    memory = np.array([np.frombuffer(copy(sample), np.uint8) for sample in samples])
    if memory.shape[1] % WORD:
        return None
    offsets = []
    for column, of_samples in zip(columns, zip(*map(values, samples), strict=True), strict=True):
        wanted = np.array([np.frombuffer(struct.pack("<" + column.code, value), np.uint8) for value in of_samples])
        windows = np.lib.stride_tricks.sliding_window_view(memory, wanted.shape[1], axis=1)
        places = np.flatnonzero((windows == wanted[:, None]).all(axis=(0, 2)))
        if len(places) != 1 or places[0] % min(wanted.shape[1], WORD):
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
        hit.is_valid = bool(dice.integers(2))
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
