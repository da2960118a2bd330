"""ArenaEvents: writes what RocketSim reports while it ticks into the fields that tasks read."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wavedash.rocket.rocketsim.record import Array

NOTHING = {"bumped": -1, "demolished": -1}
"""Values of events when nothing has happened, where they are not 0"""
LONG_AGO = -2
"""A tick before all others"""
PASS_TICKS = 240
"""Longest time from a pass to the scorer's last touch for an assist: two seconds, as in RocketSim"""


class ArenaEvents:
    """The callbacks of one arena. It must not refer to the arena, which refers to the callbacks: Python cannot collect
    reference cycles of RocketSim's objects.

    RocketSim decides on shots (0.3 s after the touch the ball is faster than 1750 uu/s and on course for the goal) and saves (a
    defender touched a shot, and it is no longer on course). It names no scorer when the last touch was over four seconds ago;
    here that touch counts all the same, so goals and assists are decided in this class.
    """

    def __init__(self, game: Mapping[str, Array], events: Mapping[str, Array], pads: Mapping[Any, tuple[int, bool]]) -> None:
        self._game, self._events, self._pads = game, events, pads
        self.seat_of: dict[int, int] = {}
        """Seats by RocketSim's number of the car"""
        self.happened = False
        """A goal or a pickup happened during this step"""
        self.scored_by: int | None = None
        """Team that scored during this step"""
        self.taken: list[int] = []
        """Pads taken during this step"""
        self.in_goal = LONG_AGO
        """Last tick in which the ball was in a goal: it scores when it comes in, not while it lies there"""
        self.demoed: set[int] = set()
        """Seats whose cars are demolished"""
        self._touch_tick: dict[int, int] = {}

    def connect(self, arena: Any) -> None:
        arena.set_ball_touch_callback(self._touch)
        arena.set_boost_pickup_callback(self._pick_up)
        arena.set_car_bump_callback(self._bump)
        arena.set_goal_score_callback(self._goal)
        arena.set_shot_event_callback(self._shot)
        arena.set_save_event_callback(self._save)

    def clear(self) -> None:
        """A new step begins. The record is cleared for all arenas at once."""
        self.happened = False
        self.scored_by = None
        self.taken.clear()

    # RocketSim calls these with keyword arguments.

    def _touch(self, arena: Any, car: Any, data: None) -> None:
        seat, tick = self.seat_of[car.id], arena.tick_count
        if self._touch_tick.get(seat) != tick:  # several points of contact in a tick are one touch
            self._touch_tick[seat] = tick
            self._events["touches"][seat] += 1

    def _pick_up(self, arena: Any, car: Any, boost_pad: Any, data: None) -> None:
        self.happened = True
        index, big = self._pads[boost_pad]
        self.taken.append(index)
        self._events["big_pads" if big else "small_pads"][self.seat_of[car.id]] += 1

    def _bump(self, arena: Any, bumper: Any, victim: Any, is_demo: bool, data: None) -> None:
        self._events["demolished" if is_demo else "bumped"][self.seat_of[bumper.id]] = self.seat_of[victim.id]
        if is_demo:
            self.demoed.add(self.seat_of[victim.id])

    def _goal(self, arena: Any, team: int, data: None) -> None:
        tick = arena.tick_count
        if self.in_goal != tick - 1:
            self.happened = True
            self.scored_by = team
            self._game["goal"].fill(team)
            self._game["score"][team] += 1
            self._credit_goal([car for car in arena.get_cars() if car.team == team])
            arena.stop()
        self.in_goal = tick

    def _credit_goal(self, cars: Sequence[Any]) -> None:
        """Credits a goal to the car of the team that touched the ball last, and the assist to the car that passed to it."""
        states = [(car.get_state().ball_hit_info, self.seat_of[car.id]) for car in cars]
        hits = sorted((hit.tick_count_when_hit, seat) for hit, seat in states if hit.is_valid)
        if hits:
            self._events["goal"][hits[-1][1]] = True
        if len(hits) > 1 and hits[-1][0] - hits[-2][0] <= PASS_TICKS:
            self._events["assist"][hits[-2][1]] = True

    def _shot(self, arena: Any, shooter: Any, passer: Any, data: None) -> None:
        self._events["shot"][self.seat_of[shooter.id]] = True

    def _save(self, arena: Any, saver: Any, data: None) -> None:
        self._events["save"][self.seat_of[saver.id]] = True
