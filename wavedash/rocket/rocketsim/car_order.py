"""The order in which RocketSim iterates over the cars of an arena. Where one car drives over another it makes a difference.

RocketSim keeps its cars in a `std::unordered_set` of their addresses. In libstdc++ (Linux) a car whose bucket is empty comes
before all others, so that the order is that in which cars were added, the last one first. A car that shares its bucket comes
right before the others in it: with three cars or more the order then depends on their addresses, which differ from game to
game. So the set is enlarged, and cars that share a bucket are added again elsewhere in memory.
"""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from wavedash.rocket.rocketsim.package import rocketsim

TEMPORARY_CARS = 300
"""Cars that `enlarge_car_set` adds and removes; RocketSim's limit is 512 bodies"""
BUCKETS = 541
"""Buckets of libstdc++'s set after so many cars were added: it never becomes smaller"""
POINTER = ctypes.sizeof(ctypes.c_void_p)


def enlarge_car_set(arena: Any) -> None:
    """Gives the set of a new arena BUCKETS buckets, so that cars seldom share one."""
    for car in reversed([arena.add_car(0) for _ in range(TEMPORARY_CARS)]):
        arena.remove_car(car)


def add_cars(arena: Any, cars: Sequence[tuple[int, Any]]) -> list[Any]:
    """Adds cars, given as (team, configuration), none of which share a bucket. Those that do are removed, in reverse order as
    Bullet's slots require, and added again after a car of another arena has taken some of the memory that they had."""
    elsewhere: list[Any] = []
    added = [arena.add_car(*car) for car in cars]
    while share_a_bucket(added):
        for car in reversed(added):
            arena.remove_car(car)
        elsewhere.append(_other_arena().add_car(0))
        added = [arena.add_car(*car) for car in cars]
    for car in elsewhere:
        _other_arena().remove_car(car)
    return added


def share_a_bucket(cars: Sequence[Any]) -> bool:
    """Whether two cars are in the same bucket, as far as that is known."""
    place = _place_of_address()
    return place is not None and len({_words(car)[place] % BUCKETS for car in cars}) < len(cars)


@cache
def _place_of_address() -> int | None:
    """Which word of a car's Python object is the address of RocketSim's car: the only one that differs from car to car. None if
    there is not exactly one."""
    cars = [_other_arena().add_car(0) for _ in range(16)]
    words = np.array([_words(car) for car in cars], np.uint64)
    for car in cars:
        _other_arena().remove_car(car)
    differ = [column for column in range(words.shape[1]) if len(np.unique(words[:, column])) == len(cars)]
    return differ[0] if len(differ) == 1 else None


def _words(car: Any) -> list[int]:
    """The memory of a car's Python object, for which CPython allocates `__basicsize__` bytes at `id`."""
    return list((ctypes.c_size_t * (type(car).__basicsize__ // POINTER)).from_address(id(car)))


@cache
def _other_arena() -> Any:
    rs = rocketsim()
    return rs.Arena(rs.GameMode.THE_VOID)
