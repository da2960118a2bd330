"""The stage for arenas in which cars are close to each other or to the ball: all their contacts are solved together."""
from __future__ import annotations

from functools import cache
from typing import Any

import warp as wp

from wavedash.rocket.sim.collision.arena_contacts import add_bounce
from wavedash.rocket.sim.collision.bodies import BODY_WORDS, Body, ball_body, load_body, store_body
from wavedash.rocket.sim.collision.broad_phase import is_in_mask
from wavedash.rocket.sim.collision.car_ball import find_car_ball_contact
from wavedash.rocket.sim.collision.car_car import find_car_car_contacts
from wavedash.rocket.sim.collision.solver import make_constraint, solve_contacts
from wavedash.rocket.sim.kernels.lanes import Lanes
from wavedash.rocket.sim.kernels.memory import CONTACTS_PER_CAR, Arenas, Model
from wavedash.rocket.sim.kernels.records import (
    BALL_AT,
    BallRecord,
    Car,
    EventRecord,
    car_at,
    event_at,
    game_at,
    load_ball,
    load_car,
    load_event,
    store_ball,
    store_car,
    store_event,
)
from wavedash.rocket.sim.mechanics.ball_hits import hit_ball
from wavedash.rocket.sim.mechanics.car import finish_car

wp.set_module_options({"enable_backward": False})


@cache
def collide_bodies(seats: int) -> Any:
    """The stage for arenas with a number of seats. Warp must know it to allocate the local arrays."""
    SEATS = seats
    BODIES = 1 + seats

    @wp.func
    def collide_bodies(model: Model, arenas: Arenas, e: int, lanes: Lanes):
        cars = wp.zeros(shape=(SEATS,), dtype=Car)
        bodies = wp.zeros(shape=(BODIES,), dtype=Body)
        events = wp.zeros(shape=(SEATS,), dtype=EventRecord)
        collide(model, arenas, e, lanes, cars, bodies, events)

    return collide_bodies


@wp.func
def collide(
    model: Model, arenas: Arenas, e: int, lanes: Lanes, cars: wp.array(dtype=Car), bodies: wp.array(dtype=Body),
    events: wp.array(dtype=EventRecord),
):
    """Finds and solves the contacts between the bodies of an arena that are close to each other, and moves the cars to the end
    of the tick. `finish_tick` moves the ball."""
    seats = arenas.seats
    ball = load_ball(arenas.words, e, BALL_AT)
    bodies[0] = ball_body(ball)
    for c in range(seats):
        if is_in_mask(arenas.collision_mask[e], c):
            cars[c] = load_car(arenas.words, e, car_at(c))
            bodies[1 + c] = load_body(arenas.bodies, e, (1 + c) * BODY_WORDS)
            events[c] = load_event(arenas.words, e, event_at(seats, c))
    end, ball = find_contacts(model, arenas, e, lanes, arenas.words[e, game_at(seats)], ball, cars, bodies, events)
    count = make_constraints(arenas, e, end, bodies)
    solve_contacts(arenas.constraints, e, 0, count, bodies)
    store_ball(arenas.words, e, BALL_AT, ball)
    store_body(arenas.bodies, e, 0, bodies[0])
    for c in range(seats):
        if is_in_mask(arenas.collision_mask[e], c) and bodies[1 + c].inverse_mass > 0.0:
            store_car(arenas.words, e, car_at(c), finish_car(cars[c], bodies[1 + c]))
            store_event(arenas.words, e, event_at(seats, c), events[c])


@wp.func
def find_contacts(
    model: Model, arenas: Arenas, e: int, lanes: Lanes, tick: int, ball: BallRecord, cars: wp.array(dtype=Car),
    bodies: wp.array(dtype=Body), events: wp.array(dtype=EventRecord),
):
    """Writes the contacts of cars with the ball and each other, and of the ball with the arena, and decides hits, bumps and
    demolitions. Returns the end of the list of contacts, and the ball."""
    count = arenas.seats * CONTACTS_PER_CAR
    for c in range(arenas.seats):
        if is_in_mask(arenas.collision_mask[e], c) and bodies[1 + c].inverse_mass > 0.0:
            touched, contact = find_car_ball_contact(c, bodies[1 + c], model.shapes[cars[c].hitbox], bodies[0])
            if touched == 1:
                arenas.contacts[e, count] = contact
                count += 1
                car, extra = hit_ball(cars[c], bodies[1 + c], bodies[0], contact, tick)
                cars[c] = car
                bodies[0].late_velocity = bodies[0].late_velocity + extra
                events[c].touches = events[c].touches + 1  # not +=, which would be atomic
                ball.last_touch = c
    for b in range(arenas.seats):
        for a in range(b + 1, arenas.seats):
            both = is_in_mask(arenas.collision_mask[e], a) and is_in_mask(arenas.collision_mask[e], b)
            if both and bodies[1 + a].inverse_mass * bodies[1 + b].inverse_mass > 0.0:
                count = find_car_car_contacts(arenas.contacts, e, count, a, b, bodies, cars, model.shapes, events)
    if wp.length_sq(bodies[0].forced_velocity) > 0.0:
        count = add_bounce(arenas, e, count, model.arena, bodies[0].position, lanes)
    return count, ball


@wp.func
def make_constraints(arenas: Arenas, e: int, end: int, bodies: wp.array(dtype=Body)) -> int:
    """Writes a constraint for each contact of a car with the arena, then for all others up to `end`. Returns the number of
    constraints."""
    count = int(0)
    for c in range(arenas.seats):
        if is_in_mask(arenas.collision_mask[e], c):
            for i in range(arenas.arena_contact_count[e, 1 + c]):
                contact = arenas.contacts[e, c * CONTACTS_PER_CAR + i]
                contact.a = 1 + c
                arenas.constraints[e, count] = make_constraint(contact, bodies[1 + c], bodies[1 + c])
                count += 1
    for i in range(arenas.seats * CONTACTS_PER_CAR, end):
        contact = arenas.contacts[e, i]
        arenas.constraints[e, count] = make_constraint(contact, bodies[contact.a], bodies[wp.max(contact.b, 0)])
        count += 1
    return count
