"""RocketSimArena: one arena of RocketSim, which can be ticked and put into any state that a record holds."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from functools import cache
from math import pi
from typing import Any

import numpy as np

from wavedash.envs.errors import EnvError
from wavedash.rocket.constants import CAR_REST_Z, GOAL_Y, HITBOXES, KICKOFF_SPAWNS, RESPAWN_SPOTS
from wavedash.rocket.rocketsim.car_order import add_cars, enlarge_car_set
from wavedash.rocket.rocketsim.events import LONG_AGO, ArenaEvents
from wavedash.rocket.rocketsim.fields import BODY, FLAGS, HIT_VECTORS, SCALARS, VECTORS
from wavedash.rocket.rocketsim.package import rocketsim
from wavedash.rocket.rocketsim.record import Array
from wavedash.rocket.seats import Seat

FIRST_TICK = 1 << 40
"""Where an arena's clock starts. It cannot be set back, and a state may hold touches from before the arena was made"""


class RocketSimArena:
    """An arena that begins with a kick-off. `record` holds the fields of the arena's next state, by part and name."""

    def __init__(self, seats: Sequence[Seat], record: Mapping[str, Mapping[str, Array]]) -> None:
        self._rs = rs = rocketsim()
        self._seats, self._record = seats, record
        self._arena = rs.Arena(rs.GameMode.SOCCAR)
        _late_arena().clone_into(self._arena)
        self._arena.step(1)  # Bullet's very first tick takes 1/60 s, so it happens before there are cars
        self._ball, self._pads = self._arena.ball, self._arena.get_boost_pads()
        configs = [rs.CarConfig(hitbox) for hitbox in range(len(HITBOXES))]
        self._teams_and_configs = [(seat.team, configs[seat.hitbox]) for seat in seats]
        self._controls, self._empty_state = rs.CarControls(), rs.CarState()
        self._rules = self._arena.get_mutator_config(), self._arena.get_mutator_config()
        self._rules[0].ball_radius -= 1.0

        self.events = ArenaEvents(record["game"], record["events"], {pad: (i, pad.is_big) for i, pad in enumerate(self._pads)})
        self.events.connect(self._arena)
        self.tick_offset = self._arena.tick_count
        """Tick of the arena minus tick of the episode"""
        self.number_offset = 0
        """RocketSim's number of a car minus its seat"""
        self._all_cars: list[Any] = []
        self._cars: dict[int, Any] = {}
        """Cars by seat"""
        self._inactive_pads: set[int] = set()
        """Pads that are not back yet, or that a car has not left"""
        enlarge_car_set(self._arena)
        self._replace_bodies()
        self._place_kickoff()

    # Ticking

    def step(self, controls: list[list[float]], ticks: int, delay: int) -> bool:
        """Runs the ticks of a step with `controls` [C][8]. A goal stops the arena for the rest of the step. Returns whether the
        new controls came into force."""
        events = self.events
        if events.happened:
            events.clear()
        if delay:
            self._tick(delay)
        for seat, car in self._cars.items():
            car.set_controls(self._to_controls(controls[seat]))
        obeyed = ticks > delay and events.scored_by is None
        if obeyed:
            self._tick(ticks - delay)
        if self._inactive_pads or events.taken:
            self._write_pads()
        return obeyed

    def states(self) -> tuple[Any, list[Any]]:
        """RocketSim's states of the ball and of the car in each seat."""
        return self._ball.get_state(), [car.get_state() if car else self._empty_state for car in self._by_seat]

    @property
    def tick(self) -> int:
        """The tick of the episode."""
        return self._arena.tick_count - self.tick_offset

    def _to_controls(self, values: list[float]) -> Any:
        """RocketSim's controls, in an object that every call reuses."""
        controls = self._controls
        controls.throttle, controls.steer, controls.pitch, controls.yaw, controls.roll, jump, boost, handbrake = values
        controls.jump, controls.boost, controls.handbrake = jump > 0.5, boost > 0.5, handbrake > 0.5
        return controls

    def _tick(self, ticks: int) -> None:
        if not self.events.demoed:
            self._arena.step(ticks)
            return
        for _ in range(ticks):
            self._arena.step(1)
            for seat in self.events.demoed.copy():
                self._choose_respawn_spot(seat)
            if self.events.scored_by is not None:
                return

    def _choose_respawn_spot(self, seat: int) -> None:
        """RocketSim draws one of the four spots with a generator that cannot be seeded. To make games reproducible, the clock
        chooses instead. The spots differ in x only."""
        car = self._cars[seat]
        state = car.get_state()
        if not state.is_demoed:
            self.events.demoed.remove(seat)
            spot = RESPAWN_SPOTS[(self.tick + seat) % len(RESPAWN_SPOTS)]
            state.pos = self._rs.Vec(spot.x, state.pos.y, state.pos.z)
            car.set_state(state)

    def _write_pads(self) -> None:
        """Writes the pads that may have changed into the record. (A pad that is there is locked by no car, which would take
        it.)"""
        fields = self._record["pads"]
        self._inactive_pads.update(self.events.taken)
        for index in self._inactive_pads.copy():
            state = self._pads[index].get_state()
            fields["timer"][index] = state.cooldown
            fields["locked_car"][index] = self.events.seat_of.get(state.prev_locked_car_id, -1)
            if state.is_active:
                self._inactive_pads.remove(index)

    # Placing

    def load(self) -> None:
        """Puts everything as the record says. What a record cannot hold begins anew: the forces of the wheels, the contacts of
        the last tick, and RocketSim's memory of shots."""
        self._check()
        self._replace_bodies()
        self.tick_offset = self._arena.tick_count - int(self._record["game"]["tick"])
        self._load_ball()
        for seat, car in self._cars.items():
            self._load_car(seat, car)
        self._load_pads()
        self._arena.step(0)  # RocketSim sees that the ball was set, and forgets shots

    def _check(self) -> None:
        for part, rows in (("ball", ...), ("cars", list(self._cars))):
            for name in ("rotation", *BODY):
                values = self._record[part][name][rows]
                if not np.isfinite(values).all():
                    raise EnvError(f"an arena was placed with a {part}.{name} that is not finite: {values.tolist()}")

    def _place_kickoff(self) -> None:
        """Puts the cars on the spots of a kick-off, each team in the order of its seats. (RocketSim's own kick-off takes cars
        in the order of their addresses.)"""
        spots, taken = (*KICKOFF_SPAWNS, *RESPAWN_SPOTS), [0, 0]
        for seat, car in self._cars.items():
            team, state = self._seats[seat].team, self._rs.CarState()
            spot, side = spots[taken[team] % len(spots)], 1 - 2 * team
            taken[team] += 1
            state.pos = self._rs.Vec(side * spot.x, side * spot.y, CAR_REST_Z)
            state.rot_mat = self._rs.Angle(spot.yaw + pi * team, 0.0, 0.0).as_rot_mat()
            car.set_state(state)

    def _replace_bodies(self) -> None:
        """Replaces all cars and the ball by new ones: RocketSim's cars remember forces of their wheels that cannot be set, and
        the ball its contacts.

        Cars are removed in reverse order, because Bullet reuses the slots of its lists like a stack: so the new ones get the
        slots that they have in a new arena, and their contacts are solved in the same order. Cars for empty seats are added and
        removed again, so that RocketSim's numbers of cars follow the seats.
        """
        empty = [seat for seat, who in enumerate(self._seats) if not who.present]
        if self._all_cars:
            for seat in empty:
                self._all_cars[seat] = self._arena.add_car(*self._teams_and_configs[seat])
            for car in reversed(self._all_cars):
                self._arena.remove_car(car)
            for rules in self._rules:  # RocketSim makes a new ball when its size changes
                self._arena.set_mutator_config(rules)
        self._all_cars = add_cars(self._arena, self._teams_and_configs)
        self.number_offset = self._all_cars[0].id
        for seat in reversed(empty):
            self._arena.remove_car(self._all_cars[seat])
        self._cars = {seat: car for seat, car in enumerate(self._all_cars) if self._seats[seat].present}
        self._by_seat = [self._cars.get(seat) for seat in range(len(self._seats))]
        self.events.seat_of = {car.id: seat for seat, car in self._cars.items()}
        self.events.demoed.clear()
        for column, name in enumerate(Seat._fields):
            self._record["cars"][name][:] = [seat[column] for seat in self._seats]

    def _load_ball(self) -> None:
        fields, state = self._record["ball"], self._rs.BallState()
        for ours, theirs in BODY.items():
            setattr(state, theirs, self._rs.Vec(*fields[ours].tolist()))
        state.rot_mat = self._rs.RotMat(*fields["rotation"].T.ravel().tolist())
        state.last_hit_car_id = self._number(fields["last_touch"])
        self._ball.set_state(state)
        in_goal = abs(fields["position"][1]) > GOAL_Y
        self.events.in_goal = self._arena.tick_count - 1 if in_goal else LONG_AGO

    def _load_car(self, seat: int, car: Any) -> None:
        fields = {name: field[seat] for name, field in self._record["cars"].items()}
        state = copy(_boosting_state()) if fields["boost_time"] > 0 else self._rs.CarState()
        for ours, theirs in (SCALARS | FLAGS).items():
            setattr(state, theirs, fields[ours].item())
        for ours, theirs in VECTORS.items():
            setattr(state, theirs, self._rs.Vec(*fields[ours].tolist()))
        state.rot_mat = self._rs.RotMat(*fields["rotation"].T.ravel().tolist())
        state.wheels_with_contact = fields["wheel_contact"].tolist()
        state.last_controls = self._to_controls(fields["controls"].tolist())
        state.car_contact_id = self._number(fields["contact_car"])
        state.ball_hit_info = self._hit(fields)
        car.set_state(state)
        car.set_controls(state.last_controls)
        if state.is_demoed:
            self.events.demoed.add(seat)

    def _hit(self, fields: Mapping[str, Array]) -> Any:
        hit, tick, impulse_tick = self._rs.BallHitInfo(), int(fields["ball_hit_tick"]), int(fields["ball_hit_impulse_tick"])
        for ours, theirs in HIT_VECTORS.items():
            setattr(hit, theirs, self._rs.Vec(*fields[ours].tolist()))
        if tick >= 0:
            hit.is_valid, hit.tick_count_when_hit = True, tick + self.tick_offset
            hit.tick_count_when_extra_impulse_applied = (impulse_tick if impulse_tick >= 0 else LONG_AGO) + self.tick_offset
        return hit

    def _load_pads(self) -> None:
        fields = self._record["pads"]
        self._inactive_pads = set(np.flatnonzero((fields["timer"] > 0) | (fields["locked_car"] >= 0)).tolist())
        for pad, timer, locked_car in zip(self._pads, fields["timer"].tolist(), fields["locked_car"].tolist(), strict=True):
            pad.set_state(self._rs.BoostPadState(
                is_active=timer <= 0, cooldown=max(timer, 0.0), prev_locked_car_id=self._number(locked_car)))

    def _number(self, seat: Any) -> int:
        """RocketSim's number of the car in a seat; 0 for -1."""
        return int(seat) + self.number_offset if seat >= 0 else 0


@cache
def _boosting_state() -> Any:
    """The state of a car that boosts. RocketSim keeps that in a flag that Python cannot set, but that a copy of a state has."""
    rs = rocketsim()
    arena = rs.Arena(rs.GameMode.THE_VOID)
    car = arena.add_car(0)
    car.set_controls(rs.CarControls(boost=True))
    arena.step(1)
    return car.get_state()


@cache
def _late_arena() -> Any:
    """An arena whose clock shows FIRST_TICK. Only unpickling can set a clock, but an arena can take over that of another."""
    rs = rocketsim()
    arena = rs.Arena(rs.GameMode.SOCCAR)
    arena.__setstate__(arena.__getstate__() | {"tick_count": FIRST_TICK})
    return arena
