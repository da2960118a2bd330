"""ArenaBatch: the arenas of one process. They tick one after the other; their states are written for all at once."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wavedash.envs.workers.signs_of_life import MAKING, Pulse
from wavedash.rocket.rocketsim.arena import RocketSimArena
from wavedash.rocket.rocketsim.events import NOTHING
from wavedash.rocket.rocketsim.record import RecordLayout, SharedArrays
from wavedash.rocket.rocketsim.state_reader import StateReader
from wavedash.rocket.seats import Seat

PLACING, STEPPING = MAKING + 1, MAKING + 2
"""What a process can be doing besides waiting and making its arenas"""


class ArenaBatch:
    """The arenas of one process. They do not use RocketSim's own threads (`Arena.multi_step`), which take Python's lock for
    every callback, count references without it, and took longer on two loaded cores. More processes use more cores instead."""

    def __init__(self, layout: RecordLayout, seats: Sequence[Sequence[Seat]], arrays: SharedArrays) -> None:
        self._arrays = arrays
        self._fields = fields = layout.views(arrays.next_records)
        self._events = layout.bytes_of(arrays.next_records, "events")
        blank = np.zeros((1, layout.size), np.uint8)
        for name, field in layout.views(blank)["events"].items():
            field.fill(NOTHING.get(name, 0))
        self._no_events = layout.bytes_of(blank, "events")
        self._pulse = Pulse(arrays.signs)
        self._arenas: list[RocketSimArena] = []
        for i, who in enumerate(seats):
            self._pulse.note(i, MAKING)
            record = {part: {name: field[i, ...] for name, field in fields[part].items()} for part in fields}
            self._arenas.append(RocketSimArena(who, record))
        self._pulse.rest()
        self._reader = StateReader(layout, arrays.next_records)
        for i, arena in enumerate(self._arenas):
            self._reader.set_offsets(i, arena.number_offset, arena.tick_offset)
        self._goes_on = bool(arrays.placed.any() or arrays.done.any())
        """This process replaces one that died: it must load its arenas from the records"""
        if not self._goes_on:
            fields["pads"]["locked_car"].fill(-1)
            self._tick(0, 0)
            arrays.records[:] = arrays.next_records

    def step(self, number: int, ticks: int, delay: int) -> None:
        """Runs step `number` of every arena. A process that dies in the middle of it leaves either the records as they were, so
        that another can do the step again, or complete next records."""
        arrays = self._arrays
        if arrays.done[0] != number:
            self._load_placed()
            self._tick(ticks, delay)
            arrays.done[:] = number
            arrays.placed.fill(False)  # not before: a process that does the first step again would begin with kick-offs
        arrays.records[:] = arrays.next_records

    def _load_placed(self) -> None:
        if not self._goes_on and not self._arrays.placed.any():
            return
        for i in range(len(self._arenas)) if self._goes_on else np.flatnonzero(self._arrays.placed).tolist():
            self._pulse.note(i, PLACING)
            self._arrays.next_records[i] = self._arrays.records[i]
            if self._arrays.resting[i]:
                continue
            self._arenas[i].load()
            self._reader.set_offsets(i, self._arenas[i].number_offset, self._arenas[i].tick_offset)
        self._pulse.rest()
        self._goes_on = False

    def _tick(self, ticks: int, delay: int) -> None:
        """Ticks all arenas but those that rest, and writes their states into the next records."""
        fields, controls, resting = self._fields, self._arrays.controls, self._arrays.resting.tolist()
        self._events[:] = self._no_events
        fields["game"]["goal"].fill(-1)
        read: list[bytes] = []
        stopped: dict[int, bool] = {}  # arenas with a goal, and whether the new controls came into force there
        for i, (arena, pressed) in enumerate(zip(self._arenas, controls.tolist(), strict=True)):
            self._pulse.note(i, STEPPING)
            obeyed = not resting[i] and arena.step(pressed, ticks, delay)
            read += self._reader.read(*arena.states())
            if arena.events.scored_by is not None:
                stopped[i] = obeyed
        self._pulse.rest()
        self._reader.write(read)
        before = {i: fields["cars"]["controls"][i].copy() for i, obeyed in stopped.items() if not obeyed}
        if ticks > delay:
            fields["cars"]["controls"][:] = controls
        for i, old in before.items():
            fields["cars"]["controls"][i] = old
        fields["game"]["tick"] += ticks
        for i in stopped:
            fields["game"]["tick"][i] = self._arenas[i].tick
        if any(resting):
            self._arrays.next_records[resting] = self._arrays.records[resting]
