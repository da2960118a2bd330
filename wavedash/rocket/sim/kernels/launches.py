"""The kernels: for a CPU all ticks of an arena in one loop; for a GPU each part of a tick, over all cars or arenas, or over a
list of those that it concerns.
"""
from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import warp as wp

from wavedash.rocket.sim.collision.bodies import Body
from wavedash.rocket.sim.collision.broad_phase import (
    can_feel_walls,
    feel_walls,
    free_way,
    is_anyone_meeting,
    look_around,
    way_of,
)
from wavedash.rocket.sim.kernels.lanes import next_place, single, team_of
from wavedash.rocket.sim.kernels.memory import (
    AT_WALLS,
    BALL_ALONE,
    BOUNCING,
    BUSY,
    DRIVES,
    FEELING,
    FLIES,
    LISTS,
    MEETING,
    TOUCHING,
    Arenas,
    World,
)
from wavedash.rocket.sim.kernels.records import Car, EventRecord
from wavedash.rocket.sim.tick import (
    begin_step,
    bounce_ball,
    collide_bodies,
    end_step,
    ready_car,
    settle_ball,
    settle_car,
    touch_arena,
    watch_arena,
)

OPTIONS = {"max_unroll": 4, "fast_math": True,
           "cpu_compiler_flags": "-march=native -mllvm=-inline-threshold=100000 -mllvm=-slp-recursion-max-depth=4"}
"""On a CPU, what is not inlined is handed copies of all its structs. On a GPU, quotients and roots are right but for the last
two bits (`fast_math`, which is nothing to a CPU)."""
SPREAD = wp.constant(8)
"""Where each thread goes its own way, a warp takes as long as all of its threads together: only every SPREAD-th works"""
ALL_LISTS = wp.constant(LISTS)


class Kernels(NamedTuple):
    """For arenas with a number of seats."""

    step: Any
    """(world, arenas, ticks, delay) by arena: all ticks of a step. A goal ends it."""
    collide: Any
    """(world, arenas, tick, threads) over a list: its part of a tick"""


@cache
def kernels(seats: int) -> Kernels:
    """Those that need room for all bodies of an arena."""
    SEATS = seats
    BODIES = 1 + seats

    @wp.func
    def collide_in(world: World, arenas: Arenas, e: int, place: int):
        cars = wp.zeros(shape=(SEATS,), dtype=Car)
        bodies = wp.zeros(shape=(BODIES,), dtype=Body)
        events = wp.zeros(shape=(SEATS,), dtype=EventRecord)
        collide_bodies(world, arenas, e, cars, bodies, events, place)

    @wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
    def step(world: World, arenas: Arenas, ticks: int, delay: int):
        e = wp.tid()
        team = single(e)
        begin_step(world, arenas, e)
        for tick in range(ticks):
            meeting = look_around(world, arenas, e)
            for c in range(arenas.seats):
                way = way_of(world, arenas, e, c, meeting)
                if way == AT_WALLS:
                    way = BUSY
                    if not feel_walls(world, arenas, e, c, team):
                        way = free_way(world, arenas, e, c, meeting)
                if ready_car(world, arenas, e, c, tick < delay, way):
                    touch_arena(world, arenas, e, c, team)
                    settle_car(arenas, e, c)
            if meeting == BALL_ALONE:
                bounce_ball(world, arenas, e, team)
                settle_ball(arenas, e)
            elif is_anyone_meeting(meeting):
                collide_in(world, arenas, e, e)
            if not watch_arena(world, arenas, e):
                break
        end_step(world, arenas, e)

    @wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
    def collide(world: World, arenas: Arenas, tick: int, threads: int):
        if wp.tid() % SPREAD == 0:
            for i in range(wp.tid() / SPREAD, arenas.many[MEETING, tick], threads / SPREAD):
                collide_in(world, arenas, arenas.lists[MEETING, i], wp.tid())

    return Kernels(step, collide)


# On a GPU, the parts of a tick one after the other. A list may be longer than there are threads: each takes every so many-th of
# its entries.


@wp.func
def enlist(arenas: Arenas, list: int, tick: int, who: int):
    """A car (arena * seats + seat) or an arena."""
    arenas.lists[list, next_place(arenas.many, list, tick)] = who


@wp.func
def enlist_car(arenas: Arenas, way: int, tick: int, car: int):
    """By what it does. Those that do the same are counted together."""
    if way == FLIES:
        enlist(arenas, FLIES, tick, car)
    elif way == DRIVES:
        enlist(arenas, DRIVES, tick, car)
    elif way == BUSY:
        enlist(arenas, BUSY, tick, car)
    else:
        enlist(arenas, AT_WALLS, tick, car)


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def begin(world: World, arenas: Arenas):
    """By arena."""
    e = wp.tid()
    begin_step(world, arenas, e)
    for tick in range(e, arenas.many.shape[1], arenas.meeting.shape[0]):
        for list in range(ALL_LISTS):
            arenas.many[list, tick] = 0


@wp.func
def sort_out(world: World, arenas: Arenas, e: int, tick: int):
    """Lists the cars of an arena by what they do, and the arena if something collides."""
    meeting = look_around(world, arenas, e)
    for c in range(arenas.seats):
        enlist_car(arenas, way_of(world, arenas, e, c, meeting), tick, e * arenas.seats + c)
    if meeting == BALL_ALONE:
        enlist(arenas, BOUNCING, tick, e)
    elif is_anyone_meeting(meeting):
        enlist(arenas, MEETING, tick, e)


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def look(world: World, arenas: Arenas):
    """By arena: before the first tick."""
    sort_out(world, arenas, wp.tid(), 0)


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def sift(world: World, arenas: Arenas, tick: int, threads: int):
    """By car at walls: lists those that may feel them, and the others by what they do."""
    for i in range(wp.tid(), arenas.many[AT_WALLS, tick], threads):
        car = arenas.lists[AT_WALLS, i]
        e = car / arenas.seats
        if can_feel_walls(world, arenas, e, car % arenas.seats):
            enlist(arenas, FEELING, tick, car)
        else:
            enlist_car(arenas, free_way(world, arenas, e, car % arenas.seats, arenas.meeting[e]), tick, car)


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def feel(world: World, arenas: Arenas, tick: int, lanes: int, threads: int):
    """By car that may feel walls, a team for each: lists it by what it does."""
    team = team_of(wp.tid(), lanes)
    for i in range(wp.tid() / lanes, arenas.many[FEELING, tick], threads / lanes):
        car = arenas.lists[FEELING, i]
        e = car / arenas.seats
        feels = feel_walls(world, arenas, e, car % arenas.seats, team)
        if team.lane == 0:
            way = int(BUSY)
            if not feels:
                way = free_way(world, arenas, e, car % arenas.seats, arenas.meeting[e])
            enlist_car(arenas, way, tick, car)


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def fly(world: World, arenas: Arenas, delay: int, tick: int, threads: int):
    """By car that does."""
    for i in range(wp.tid(), arenas.many[FLIES, tick], threads):
        car = arenas.lists[FLIES, i]
        ready_car(world, arenas, car / arenas.seats, car % arenas.seats, tick < delay, FLIES)


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def drive(world: World, arenas: Arenas, delay: int, tick: int, threads: int):
    """By car that does."""
    for i in range(wp.tid(), arenas.many[DRIVES, tick], threads):
        car = arenas.lists[DRIVES, i]
        ready_car(world, arenas, car / arenas.seats, car % arenas.seats, tick < delay, DRIVES)


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def ready(world: World, arenas: Arenas, delay: int, tick: int, threads: int):
    """By busy car: lists those that may touch walls."""
    for i in range(wp.tid(), arenas.many[BUSY, tick], threads):
        car = arenas.lists[BUSY, i]
        if ready_car(world, arenas, car / arenas.seats, car % arenas.seats, tick < delay, BUSY):
            enlist(arenas, TOUCHING, tick, car)


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def touch(world: World, arenas: Arenas, tick: int, lanes: int, threads: int):
    """By car that may touch the arena, a team for each."""
    team = team_of(wp.tid(), lanes)
    for i in range(wp.tid() / lanes, arenas.many[TOUCHING, tick], threads / lanes):
        car = arenas.lists[TOUCHING, i]
        touch_arena(world, arenas, car / arenas.seats, car % arenas.seats, team)


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def settle_cars(arenas: Arenas, tick: int, threads: int):
    """By car that may touch the arena."""
    for i in range(wp.tid(), arenas.many[TOUCHING, tick], threads):
        car = arenas.lists[TOUCHING, i]
        settle_car(arenas, car / arenas.seats, car % arenas.seats)


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def bounce(world: World, arenas: Arenas, tick: int, lanes: int, threads: int):
    """By arena where the ball is at a wall, a team for each."""
    team = team_of(wp.tid(), lanes)
    for i in range(wp.tid() / lanes, arenas.many[BOUNCING, tick], threads / lanes):
        bounce_ball(world, arenas, arenas.lists[BOUNCING, i], team)


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def settle_balls(arenas: Arenas, tick: int, threads: int):
    """By arena where the ball is at a wall."""
    for i in range(wp.tid(), arenas.many[BOUNCING, tick], threads):
        settle_ball(arenas, arenas.lists[BOUNCING, i])


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def watch(world: World, arenas: Arenas, tick: int, ticks: int):
    """By arena. What it has read is at hand for a look at the next tick."""
    e = wp.tid()
    if watch_arena(world, arenas, e):
        if tick + 1 < ticks:
            sort_out(world, arenas, e, tick + 1)


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def end(world: World, arenas: Arenas):
    """By arena."""
    end_step(world, arenas, wp.tid())
