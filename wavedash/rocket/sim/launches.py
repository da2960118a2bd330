"""The kernels: for a CPU all ticks of an arena in one loop; for a GPU each part of a tick, over all cars or arenas, or over a
list of those that it concerns.
"""
from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import warp as wp

from wavedash.rocket.sim.bodies import Body
from wavedash.rocket.sim.records import Car, EventRecord
from wavedash.rocket.sim.tick import (
    begin_step,
    collide_bodies,
    end_step,
    is_among,
    is_over,
    look_around,
    move_on,
    ready_car,
    touch_arena,
    watch_arena,
)
from wavedash.rocket.sim.world import BUSY, MET, NEAR, Arenas, World

OPTIONS = {"max_unroll": 4,
           "cpu_compiler_flags": "-march=native -mllvm=-inline-threshold=100000 -mllvm=-slp-recursion-max-depth=4"}
"""What is not inlined is handed copies of all its structs"""
SPREAD = wp.constant(8)
"""See `alone_in_warp`"""


@wp.func
def alone_in_warp(thread: int) -> int:
    """Number of the work of every SPREAD-th thread, -1: none. Where each thread goes its own way, a warp takes as long as all
    of its threads together, so few of them work in each of many warps."""
    if thread % SPREAD == 0:
        return thread / SPREAD
    return -1


class Kernels(NamedTuple):
    """For arenas with a number of seats."""

    step: Any
    """(first, world, arenas, ticks, delay) by arena: all ticks of a step. A goal ends it."""
    collide: Any
    """(world, arenas, tick) by arena of the list: its part of a tick"""


@cache
def kernels(seats: int) -> Kernels:
    """Those that need room for all bodies of an arena."""
    SEATS = seats
    BODIES = 1 + seats

    @wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
    def step(first: int, world: World, arenas: Arenas, ticks: int, delay: int):
        e = first + wp.tid()
        cars = wp.zeros(shape=(SEATS,), dtype=Car)
        bodies = wp.zeros(shape=(BODIES,), dtype=Body)
        events = wp.zeros(shape=(SEATS,), dtype=EventRecord)
        begin_step(arenas, e)
        for _ in range(ticks):
            if is_over(arenas, e):
                break
            look_around(world, arenas, e)
            for c in range(arenas.seats):
                if ready_car(world, arenas, e, c, delay, is_among(arenas.cruising[e], c)):
                    touch_arena(world, arenas, e, c)
            if arenas.meeting[e] != 0:
                collide_bodies(world, arenas, e, cars, bodies, events)
            for c in range(arenas.seats):
                if not is_among(arenas.cruising[e], c):
                    move_on(arenas, e, c)
            watch_arena(world, arenas, e)
        end_step(arenas, e)

    @wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
    def collide(world: World, arenas: Arenas, tick: int):
        i = alone_in_warp(wp.tid())
        if i >= 0 and i < arenas.many[MET, tick]:
            cars = wp.zeros(shape=(SEATS,), dtype=Car)
            bodies = wp.zeros(shape=(BODIES,), dtype=Body)
            events = wp.zeros(shape=(SEATS,), dtype=EventRecord)
            collide_bodies(world, arenas, arenas.met[i], cars, bodies, events)

    return Kernels(step, collide)


# On a GPU, the parts of a tick one after the other ----------------------------------------------------------------------------


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def begin(arenas: Arenas):
    """By arena."""
    e = wp.tid()
    begin_step(arenas, e)
    if e == 0:
        for tick in range(arenas.many.shape[1]):
            arenas.many[BUSY, tick] = 0
            arenas.many[NEAR, tick] = 0
            arenas.many[MET, tick] = 0


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def look(world: World, arenas: Arenas, tick: int):
    """By arena."""
    e = wp.tid()
    look_around(world, arenas, e)
    if arenas.meeting[e] != 0:
        arenas.met[wp.atomic_add(arenas.many, MET, tick, 1)] = e


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def cruise(world: World, arenas: Arenas, delay: int, tick: int):
    """By seat and arena."""
    c, e = wp.tid()
    if is_among(arenas.cruising[e], c):
        ready_car(world, arenas, e, c, delay, True)
    elif not is_over(arenas, e):
        arenas.busy[wp.atomic_add(arenas.many, BUSY, tick, 1)] = e * arenas.seats + c


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def ready(world: World, arenas: Arenas, delay: int, tick: int):
    """By car that does not cruise."""
    i = wp.tid()
    if i < arenas.many[BUSY, tick]:
        car = arenas.busy[i]
        if ready_car(world, arenas, car / arenas.seats, car % arenas.seats, delay, False):
            arenas.near[wp.atomic_add(arenas.many, NEAR, tick, 1)] = car


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def touch(world: World, arenas: Arenas, tick: int):
    """By car near the arena's walls."""
    i = alone_in_warp(wp.tid())
    if i >= 0 and i < arenas.many[NEAR, tick]:
        touch_arena(world, arenas, arenas.near[i] / arenas.seats, arenas.near[i] % arenas.seats)


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def move(arenas: Arenas, tick: int):
    """By car that does not cruise."""
    i = wp.tid()
    if i < arenas.many[BUSY, tick]:
        move_on(arenas, arenas.busy[i] / arenas.seats, arenas.busy[i] % arenas.seats)


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def watch(world: World, arenas: Arenas):
    """By arena."""
    watch_arena(world, arenas, wp.tid())


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def end(arenas: Arenas):
    """By arena."""
    end_step(arenas, wp.tid())
