"""Pickups of boost pads: which car holds a pad, which gets its boost, and when the pad is back."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import BIG_BOOST, BIG_PAD_SECONDS, BOOST_MAX, SMALL_BOOST, SMALL_PAD_SECONDS
from wavedash.rocket.sim.constants import DT
from wavedash.rocket.sim.kernels.memory import Arenas, Model
from wavedash.rocket.sim.kernels.records import (
    BOOST_WORD,
    HITBOX_WORD,
    car_at,
    event_at,
    is_active,
    load_event,
    load_pose,
    pads_at,
    store_event,
)
from wavedash.rocket.sim.mechanics.pads import is_on_pad, pad_in_reach

wp.set_module_options({"enable_backward": False})


@wp.func
def take_pad(model: Model, arenas: Arenas, e: int, c: int, ticks_done: int):
    """A car on a pad holds it, and takes its boost if the pad is ready. Of two cars the one in the earlier seat holds it, and a
    car with full boost holds none. Until the step ends, timers are as they were at its first tick; `ticks_done` ticks have
    passed since."""
    held = arenas.held_pad[e, c]
    pose = load_pose(arenas.words, e, car_at(c))
    pad = pad_in_reach(model.pads, pose.position)
    if held < 0 and pad < 0:
        return
    boost = arenas.floats[e, car_at(c) + BOOST_WORD]
    if boost >= BOOST_MAX or not is_active(arenas.words, e, c):
        pad = -1
    if pad >= 0:
        shape = model.shapes[arenas.words[e, car_at(c) + HITBOX_WORD]]
        if not is_on_pad(model.pads, pad, pose, shape, held):
            pad = -1
    for other in range(c):
        if arenas.held_pad[e, other] == pad:
            pad = -1
    arenas.held_pad[e, c] = pad
    if pad >= 0:
        timer = pads_at(arenas.seats) + pad
        if arenas.floats[e, timer] - float(ticks_done) * DT <= 0.0:
            big = model.pads.big[pad] == 1
            arenas.floats[e, car_at(c) + BOOST_WORD] = wp.min(boost + wp.where(big, BIG_BOOST, SMALL_BOOST), BOOST_MAX)
            arenas.floats[e, timer] = wp.where(big, BIG_PAD_SECONDS, SMALL_PAD_SECONDS) + float(ticks_done) * DT
            event = load_event(arenas.words, e, event_at(arenas.seats, c))
            if big:
                event.big_pads += 1
            else:
                event.small_pads += 1
            store_event(arenas.words, e, event_at(arenas.seats, c), event)
