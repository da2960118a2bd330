"""Kernels made from the stages of a tick (`tick.py`).

For a CPU, `whole_step`: one kernel in which each arena runs all stages of all ticks. For a GPU, `stage_kernel`: a kernel for
each stage over a class, launched over the list of the class; stages over everyone that follow each other share a kernel, the
last one of a tick with those that begin the next.
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
"""On a CPU, what is not inlined is handed copies of all its structs. On a GPU, quotients and roots are right but for the last
two bits (`fast_math`, which is nothing to a CPU)."""
SPREAD = wp.constant(8)
"""Where threads diverge, a warp takes as long as all of its threads together: only every SPREAD-th works"""


def _kernel(function: Callable[..., None], stage: Stage) -> Any:
    """A kernel of its own module, named after the stage."""
    return wp.kernel(_named(function, stage.function.key), enable_backward=False, module="unique", module_options=OPTIONS)


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Warp tells functions apart by their names."""
    function.__name__ = function.__qualname__ = name
    return function


def _opening(all_stages: Sequence[Stage]) -> list[Stage]:
    """The stages over everyone with which a tick begins."""
    return list(takewhile(lambda stage: stage.over.number is None, all_stages))


# On a CPU: all ticks of an arena in one loop ----------------------------------------------------------------------------------


@cache
def whole_step(seats: int) -> Any:
    """(model, arenas, ticks, delay), by arena: all ticks of a step. A goal ends it."""
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
    """A stage that follows a shortcut runs over the class of the shortcut."""
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
    """(model, arenas, e, late, class of the arena) to its class after all of the functions, which have the same arguments."""
    first, *later = functions
    if not later:
        return first
    rest = _in_order(later)

    def run(model: Model, arenas: Arenas, e: int, late: bool, arena_class: int) -> int:
        return rest(model, arenas, e, late, first(model, arenas, e, late, arena_class))

    return wp.func(_named(run, f"run_last_{len(functions)}"))


def _run_arena(stage: Stage) -> Any:
    """A stage over arenas, for `_in_order`."""
    function, number = stage.function, stage.over.number
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
    """Stages over cars that follow each other, for `_in_order`: car by car, since none reads what they write of another car."""
    run_car = _run_car(run)

    def run_cars(model: Model, arenas: Arenas, e: int, late: bool, arena_class: int) -> int:
        for c in range(arenas.seats):
            run_car(model, arenas, e, c, late, NO_CLASS)
        return arena_class

    return wp.func(run_cars)


def _run_car(run: Sequence[Stage]) -> Any:
    """(model, arenas, e, c, late, class of the car): all of the stages for one car. Its class is never written to memory."""
    stage, *later = run
    function, number = stage.function, stage.over.number
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
    """The end of all stages."""


# On a GPU: a launch for each stage, over the list of its class ----------------------------------------------------------------
# A list may be longer than there are threads: each takes every so many-th of its entries.


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def begin(model: Model, arenas: Arenas):
    """One thread per arena. All lists of all ticks become empty."""
    e = wp.tid()
    begin_step(model, arenas, e)
    for tick in range(e, arenas.list_lengths.shape[1], arenas.collision_mask.shape[0]):
        for list in range(CLASS_COUNT):
            arenas.list_lengths[list, tick] = 0


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def end(model: Model, arenas: Arenas):
    """One thread per arena."""
    end_step(model, arenas, wp.tid())


@cache
def opening_kernel(seats: int) -> Any:
    """(model, arenas, tick), by arena: the stages over everyone with which a tick begins."""
    open_tick = _open_tick(seats)

    @wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
    def begin_tick(model: Model, arenas: Arenas, tick: int):
        open_tick(model, arenas, wp.tid(), tick)

    return begin_tick


@cache
def closing_kernel(seats: int) -> Any:
    """(model, arenas, tick, ticks), by arena: the last stage, and the stages with which the next tick begins. What the last one
    has read is at hand for them."""
    open_tick, finish_tick = _open_tick(seats), stages(seats)[-1].function

    @wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
    def end_tick(model: Model, arenas: Arenas, tick: int, ticks: int):
        e = wp.tid()
        if finish_tick(model, arenas, e, one_lane(e)):
            if tick + 1 < ticks:
                open_tick(model, arenas, e, tick + 1)

    return end_tick


def listed_stages(seats: int) -> list[Stage]:
    """The stages between those over everyone: each is a launch of its own."""
    *before, _last = stages(seats)
    return before[len(_opening(before)):]


@cache
def stage_kernel(stage: Stage) -> Any:
    """(model, arenas, tick, late, lane_count, threads), over the list of the stage's class."""
    work, number = _work(stage), stage.over.number
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
    """(model, arenas, entry of the list, tick, late, lanes): a stage for one car (arena * seats + seat) or arena."""
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
    """(model, arenas, e, tick): the stages over everyone with which a tick begins, for one arena."""
    return _open_in_order([_open_stage(stage) for stage in _opening(stages(seats))])


def _open_in_order(functions: Sequence[Any]) -> Any:
    """(model, arenas, e, tick): calls all of the functions, which have the same arguments."""
    first, *later = functions
    if not later:
        return first
    rest = _open_in_order(later)

    def run(model: Model, arenas: Arenas, e: int, tick: int):
        first(model, arenas, e, tick)
        rest(model, arenas, e, tick)

    return wp.func(_named(run, f"open_last_{len(functions)}"))


def _open_stage(stage: Stage) -> Any:
    """A stage over everyone, for `_open_in_order`: appends each car, or the arena, to the list of its class."""
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
    """(arenas, class, tick, entry): appends a car or arena to the list of its class, one of `classes` or none. There is a
    branch for each: threads of a warp with the same class share one atomic operation."""
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
