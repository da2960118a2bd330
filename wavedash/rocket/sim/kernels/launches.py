"""Kernels made from the stages of a tick (`tick.py`).

For a CPU there is `whole_step`, one kernel in which each arena runs all stages of all ticks. For a GPU there is `stage_kernel`,
a kernel for each stage over a class, launched over the list of the class. Successive stages over all cars or arenas share a
kernel: the last stage of a tick and those that begin the next one.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby, takewhile
from typing import Any

import warp as wp

from wavedash.rocket.sim.classes import CLASS_COUNT, NO_CLASS
from wavedash.rocket.sim.kernels.lanes import Lanes, lanes_of, next_slot, one_lane
from wavedash.rocket.sim.kernels.memory import Arenas, Model
from wavedash.rocket.sim.step import begin_step, end_step
from wavedash.rocket.sim.tick import Stage, stages

OPTIONS = {"max_unroll": 4, "fast_math": True,
           "cpu_compiler_flags": "-march=native -mllvm=-inline-threshold=100000 -mllvm=-slp-recursion-max-depth=4"}
"""A CPU copies all structs that it hands to a function that is not inlined. On a GPU, quotients and roots are right but for the
last two bits (`fast_math`, which does not concern a CPU)."""
SPREAD = wp.constant(8)
"""Where threads diverge, a warp takes as long as all of its threads together: only every SPREAD-th thread works"""


def _kernel(function: Callable[..., None], stage: Stage) -> Any:
    """A kernel in a module of its own, named after the stage."""
    return wp.kernel(_named(function, stage.function.key), enable_backward=False, module="unique", module_options=OPTIONS)


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Renames a function: Warp tells functions apart by their names."""
    function.__name__ = function.__qualname__ = name
    return function


def _opening(all_stages: Sequence[Stage]) -> list[Stage]:
    """The stages over all arenas or cars with which a tick begins."""
    return list(takewhile(lambda stage: stage.over.class_number is None, all_stages))


# On a CPU: all ticks of an arena in one loop ----------------------------------------------------------------------------------


@cache
def whole_step(seats: int) -> Any:
    """A kernel (model, arenas, ticks, delay) over arenas that runs all ticks of a step. A goal ends it early."""
    *before, last = _without_shortcuts(stages(seats))
    runs = [(over_cars, list(run)) for over_cars, run in groupby(before, lambda stage: stage.over.cars)]
    run_stages = _in_order([f for over_cars, run in runs for f in ([_run_cars(run)] if over_cars else map(_run_arena, run))])
    finish_tick = last.function

    @wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
    def step(model: Model, arenas: Arenas, ticks: int, delay: int):
        e = wp.tid()
        begin_step(model, arenas, e)
        for tick in range(ticks):
            run_stages(model, arenas, e, tick < delay, NO_CLASS)
            if not finish_tick(model, arenas, e, one_lane(e)):
                break
        end_step(model, arenas, e)

    return step


def _without_shortcuts(all_stages: Sequence[Stage]) -> list[Stage]:
    """The stages without shortcuts. The stage after a shortcut runs over the class of the shortcut instead."""
    kept: list[Stage] = []
    over = None
    for stage in all_stages:
        if stage.shortcut:
            over = stage.over
        else:
            kept.append(stage._replace(over=over or stage.over))
            over = None
    return kept


def _in_order(functions: Sequence[Any]) -> Any:
    """A function that calls all of the functions in turn. Each takes (model, arenas, e, late, class of the arena) and returns
    the class of the arena afterwards."""
    first, *later = functions
    if not later:
        return first
    rest = _in_order(later)

    def run(model: Model, arenas: Arenas, e: int, late: bool, arena_class: int) -> int:
        return rest(model, arenas, e, late, first(model, arenas, e, late, arena_class))

    return wp.func(_named(run, f"run_last_{len(functions)}"))


def _run_arena(stage: Stage) -> Any:
    """A stage over arenas as a function for `_in_order`."""
    function, number = stage.function, stage.over.class_number
    if number is None:
        def run(model: Model, arenas: Arenas, e: int, late: bool, arena_class: int) -> int:
            return function(model, arenas, e, one_lane(e))
    else:
        def run(model: Model, arenas: Arenas, e: int, late: bool, arena_class: int) -> int:
            if arena_class == number:
                function(model, arenas, e, one_lane(e))
            return arena_class
    return wp.func(_named(run, f"run_{stage.function.key}"))


def _run_cars(run: Sequence[Stage]) -> Any:
    """Successive stages over cars as one function for `_in_order`: it goes car by car, since no stage reads what these stages
    write about another car."""
    run_car = _run_car(run)

    def run_cars(model: Model, arenas: Arenas, e: int, late: bool, arena_class: int) -> int:
        for c in range(arenas.seats):
            run_car(model, arenas, e, c, late, NO_CLASS)
        return arena_class

    return wp.func(run_cars)


def _run_car(run: Sequence[Stage]) -> Any:
    """A function (model, arenas, e, c, late, class of the car) that runs all of the stages for one car. The class of the car is
    never written to memory."""
    stage, *later = run
    function, number = stage.function, stage.over.class_number
    rest = _run_car(later) if later else _finish_cars
    if number is None:
        def run_car(model: Model, arenas: Arenas, e: int, c: int, late: bool, car_class: int):
            rest(model, arenas, e, c, late, function(model, arenas, e, c, late, one_lane(e)))
    elif stage.sorts_into:
        def run_car(model: Model, arenas: Arenas, e: int, c: int, late: bool, car_class: int):
            next_class = car_class
            if car_class == number:
                next_class = function(model, arenas, e, c, late, one_lane(e))
            rest(model, arenas, e, c, late, next_class)
    else:
        def run_car(model: Model, arenas: Arenas, e: int, c: int, late: bool, car_class: int):
            if car_class == number:
                function(model, arenas, e, c, late, one_lane(e))
            rest(model, arenas, e, c, late, car_class)
    return wp.func(_named(run_car, f"run_{stage.function.key}"))


@wp.func
def _finish_cars(model: Model, arenas: Arenas, e: int, c: int, late: bool, car_class: int):
    """Ends the chain of `_run_car`."""


# On a GPU: a launch for each stage, over the list of its class ----------------------------------------------------------------
# A list may have more entries than there are threads: of n threads, each takes every n-th entry.


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def begin(model: Model, arenas: Arenas):
    """Begins a step, one thread per arena, and empties all lists of all ticks."""
    e = wp.tid()
    begin_step(model, arenas, e)
    for tick in range(e, arenas.list_lengths.shape[1], arenas.collision_mask.shape[0]):
        for list in range(CLASS_COUNT):
            arenas.list_lengths[list, tick] = 0


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def end(model: Model, arenas: Arenas):
    """Ends a step, one thread per arena."""
    end_step(model, arenas, wp.tid())


@cache
def opening_kernel(seats: int) -> Any:
    """A kernel (model, arenas, tick) over arenas that runs the stages with which a tick begins."""
    open_tick = _open_tick(seats)

    @wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
    def begin_tick(model: Model, arenas: Arenas, tick: int):
        open_tick(model, arenas, wp.tid(), tick)

    return begin_tick


@cache
def closing_kernel(seats: int) -> Any:
    """A kernel (model, arenas, tick, ticks) over arenas that runs the last stage, and the stages with which the next tick
    begins: these find what the last stage has read in the cache."""
    open_tick, finish_tick = _open_tick(seats), stages(seats)[-1].function

    @wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
    def end_tick(model: Model, arenas: Arenas, tick: int, ticks: int):
        e = wp.tid()
        if finish_tick(model, arenas, e, one_lane(e)):
            if tick + 1 < ticks:
                open_tick(model, arenas, e, tick + 1)

    return end_tick


def listed_stages(seats: int) -> list[Stage]:
    """The stages over classes: each is a launch of its own."""
    *before, _last = stages(seats)
    return before[len(_opening(before)):]


@cache
def stage_kernel(stage: Stage) -> Any:
    """A kernel (model, arenas, tick, late, lane_count, threads) over the list of the stage's class."""
    work, number = _work(stage), stage.over.class_number
    if stage.lanes:
        def kernel(model: Model, arenas: Arenas, tick: int, late: bool, lane_count: int, threads: int):
            lanes = lanes_of(wp.tid(), lane_count)
            for i in range(wp.tid() / lane_count, arenas.list_lengths[number, tick], threads / lane_count):
                work(model, arenas, arenas.lists[number, i], tick, late, lanes)
    elif stage.diverges:
        def kernel(model: Model, arenas: Arenas, tick: int, late: bool, lane_count: int, threads: int):
            if wp.tid() % SPREAD == 0:
                for i in range(wp.tid() / SPREAD, arenas.list_lengths[number, tick], threads / SPREAD):
                    work(model, arenas, arenas.lists[number, i], tick, late, one_lane(wp.tid()))
    else:
        def kernel(model: Model, arenas: Arenas, tick: int, late: bool, lane_count: int, threads: int):
            for i in range(wp.tid(), arenas.list_lengths[number, tick], threads):
                work(model, arenas, arenas.lists[number, i], tick, late, one_lane(wp.tid()))
    return _kernel(kernel, stage)


def _work(stage: Stage) -> Any:
    """A function (model, arenas, entry, tick, late, lanes) that runs a stage for one entry of a list: an arena, or a car as
    arena * seats + seat."""
    function = stage.function
    if stage.over.cars and stage.sorts_into:
        append = _append(stage.sorts_into)

        def work(model: Model, arenas: Arenas, entry: int, tick: int, late: bool, lanes: Lanes):
            car_class = function(model, arenas, entry / arenas.seats, entry % arenas.seats, late, lanes)
            if lanes.lane == 0:
                append(arenas, car_class, tick, entry)
    elif stage.over.cars:
        def work(model: Model, arenas: Arenas, entry: int, tick: int, late: bool, lanes: Lanes):
            function(model, arenas, entry / arenas.seats, entry % arenas.seats, late, lanes)
    else:
        def work(model: Model, arenas: Arenas, entry: int, tick: int, late: bool, lanes: Lanes):
            function(model, arenas, entry, lanes)
    return wp.func(_named(work, f"work_{stage.function.key}"))


def _open_tick(seats: int) -> Any:
    """A function (model, arenas, e, tick) that runs the stages with which a tick begins, for one arena."""
    return _open_in_order([_open_stage(stage) for stage in _opening(stages(seats))])


def _open_in_order(functions: Sequence[Any]) -> Any:
    """A function (model, arenas, e, tick) that calls all of the functions, which have the same arguments."""
    first, *later = functions
    if not later:
        return first
    rest = _open_in_order(later)

    def run(model: Model, arenas: Arenas, e: int, tick: int):
        first(model, arenas, e, tick)
        rest(model, arenas, e, tick)

    return wp.func(_named(run, f"open_last_{len(functions)}"))


def _open_stage(stage: Stage) -> Any:
    """A stage over all cars or arenas as a function for `_open_in_order`: it appends each to the list of its class."""
    function, append = stage.function, _append(stage.sorts_into)
    if stage.over.cars:
        def run(model: Model, arenas: Arenas, e: int, tick: int):
            for c in range(arenas.seats):
                append(arenas, function(model, arenas, e, c, False, one_lane(e)), tick, e * arenas.seats + c)
    else:
        def run(model: Model, arenas: Arenas, e: int, tick: int):
            append(arenas, function(model, arenas, e, one_lane(e)), tick, e)
    return wp.func(_named(run, f"open_{stage.function.key}"))


def _append(classes: tuple[int, ...]) -> Any:
    """A function (arenas, class, tick, entry) that appends a car or arena to the list of its class if that is one of `classes`.
    Each class has a branch of its own, in which the threads of a warp share one atomic operation."""
    number, *others = classes
    if others:
        rest = _append(tuple(others))

        def append(arenas: Arenas, entry_class: int, tick: int, entry: int):
            if entry_class == number:
                arenas.lists[number, next_slot(arenas.list_lengths, number, tick)] = entry
            else:
                rest(arenas, entry_class, tick, entry)
    else:
        def append(arenas: Arenas, entry_class: int, tick: int, entry: int):
            if entry_class == number:
                arenas.lists[number, next_slot(arenas.list_lengths, number, tick)] = entry
    return wp.func(_named(append, "append_" + "_".join(map(str, classes))))
