"""What happens before and after the ticks of a step."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.constants import DT
from wavedash.rocket.sim.kernels.memory import Arenas, Model
from wavedash.rocket.sim.kernels.records import GOAL_WORD, PAD_COUNT, EventRecord, event_at, game_at, pads_at, store_event
from wavedash.rocket.sim.limits import reset_if_invalid
from wavedash.rocket.sim.mechanics.pads import advance_pads, is_any_pad_held
from wavedash.rocket.sim.mechanics.scoring import ScoringMemory, store_scoring
from wavedash.rocket.sim.mechanics.suspension import DRIVETRAIN_WORDS, reset_drivetrain

wp.set_module_options({"enable_backward": False})


@wp.func
def begin_step(model: Model, arenas: Arenas, e: int):
    """Clears the events of the previous step, and finds out which pads are held."""
    arenas.words[e, game_at(arenas.seats) + GOAL_WORD] = -1
    arenas.ticks_done[e] = 0
    reset_invalid_arena(model, arenas, e)
    nothing = EventRecord()
    nothing.bumped = -1
    nothing.demolished = -1
    for c in range(arenas.seats):
        store_event(arenas.words, e, event_at(arenas.seats, c), nothing)
        arenas.held_pad[e, c] = -1
    if is_any_pad_held(arenas.words, e, pads_at(arenas.seats)):
        holders = pads_at(arenas.seats) + PAD_COUNT
        for i in range(PAD_COUNT):
            holder = arenas.words[e, holders + i]
            if holder >= 0:
                arenas.held_pad[e, holder] = i


@wp.func
def end_step(model: Model, arenas: Arenas, e: int):
    """Writes the pads as the step left them."""
    timers = pads_at(arenas.seats)
    advance_pads(arenas.words, e, timers, float(arenas.ticks_done[e]) * DT)
    for c in range(arenas.seats):
        if arenas.held_pad[e, c] >= 0:
            arenas.words[e, timers + PAD_COUNT + arenas.held_pad[e, c]] = c
    reset_invalid_arena(model, arenas, e)


@wp.func
def reset_invalid_arena(model: Model, arenas: Arenas, e: int):
    """Restarts an arena whose state cannot occur in the game, and clears what it remembered."""
    if reset_if_invalid(model.limits, arenas.words, arenas.floats, e, arenas.seats):
        arenas.reset_count[e] = arenas.reset_count[e] + 1
        store_scoring(arenas.scoring, e, 0, ScoringMemory())
        for c in range(arenas.seats):
            reset_drivetrain(arenas.drivetrain, e, c * DRIVETRAIN_WORDS)
