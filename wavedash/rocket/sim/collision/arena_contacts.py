"""Stages for bodies that touch nothing but the arena: lanes find their contacts together, one thread per body solves them."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.arena import ArenaGeometry
from wavedash.rocket.sim.collision.arena_solver import (
    ARENA_CONSTRAINT_WORDS,
    make_arena_constraint,
    solve_arena_contacts,
    solve_arena_penetrations,
    solve_single_contact,
    store_arena_constraint,
)
from wavedash.rocket.sim.collision.ball_arena import add_ball_contacts
from wavedash.rocket.sim.collision.bodies import BODY_WORDS, ball_body, load_body, store_body
from wavedash.rocket.sim.collision.broad_phase import is_in_mask
from wavedash.rocket.sim.collision.car_arena import add_car_contacts
from wavedash.rocket.sim.collision.contacts import ARENA, BALL, Contact
from wavedash.rocket.sim.constants import BALL_FRICTION, BALL_RESTITUTION
from wavedash.rocket.sim.kernels.lanes import Lanes
from wavedash.rocket.sim.kernels.memory import CONTACTS_PER_CAR, Arenas, Model
from wavedash.rocket.sim.kernels.records import (
    BALL_AT,
    CAR_WORDS,
    HITBOX_WORD,
    car_at,
    load_ball,
    load_car,
    store_arena_contact,
    store_car,
)
from wavedash.rocket.sim.kernels.struct_io import prefetch
from wavedash.rocket.sim.mechanics.car import finish_car

wp.set_module_options({"enable_backward": False})


@wp.func
def find_car_contacts(model: Model, arenas: Arenas, e: int, c: int, late: bool, lanes: Lanes):
    """Finds where a car's body touches the arena."""
    shape = model.shapes[arenas.words[e, car_at(c) + HITBOX_WORD]]
    body = load_body(arenas.bodies, e, (1 + c) * BODY_WORDS)
    start = c * CONTACTS_PER_CAR
    end, touch = add_car_contacts(model.arena, shape, body.position, body.rotation, arenas.contacts, e, start, lanes,
                                  arenas.candidates, arenas.lane_touches)
    if lanes.lane == 0 and touch.touches:
        arenas.arena_contact_count[e, 1 + c] = end - start
        store_arena_contact(arenas.words, arenas.floats, e, c, touch.normal)


@wp.func
def solve_car_contacts(model: Model, arenas: Arenas, e: int, c: int, late: bool, lanes: Lanes):
    """Applies the arena's impulses to a car and moves it to the end of the tick. `collide_bodies` does that for a car that may
    touch other bodies as well."""
    if not is_in_mask(arenas.collision_mask[e], c):
        prefetch(arenas.words, e, car_at(c))
        prefetch(arenas.words, e, car_at(c) + CAR_WORDS / 2)
        body = load_body(arenas.bodies, e, (1 + c) * BODY_WORDS)
        start = c * CONTACTS_PER_CAR
        count = arenas.arena_contact_count[e, 1 + c]
        for i in range(start, start + count):
            constraint = make_arena_constraint(arenas.contacts[e, i], body)
            store_arena_constraint(arenas.arena_constraints, e, i * ARENA_CONSTRAINT_WORDS, constraint)
        body = solve_arena_contacts(arenas.arena_constraints, e, start, count, body)
        store_car(arenas.words, e, car_at(c), finish_car(load_car(arenas.words, e, car_at(c)), body))


@wp.func
def find_ball_contacts(model: Model, arenas: Arenas, e: int, lanes: Lanes):
    """Finds where a ball that is far from all cars touches the arena."""
    body = ball_body(load_ball(arenas.words, e, BALL_AT))
    start = arenas.seats * CONTACTS_PER_CAR
    end = add_bounce(arenas, e, start, model.arena, body.position, lanes)
    if lanes.lane == 0:
        arenas.arena_contact_count[e, 0] = end - start
        store_body(arenas.bodies, e, 0, body)


@wp.func
def solve_ball_contacts(model: Model, arenas: Arenas, e: int, lanes: Lanes):
    """Applies the arena's impulses to the ball: all contacts but the last only push it out of the arena, and it bounces off the
    last. `finish_tick` moves it."""
    body = load_body(arenas.bodies, e, 0)
    start = arenas.seats * CONTACTS_PER_CAR
    count = arenas.arena_contact_count[e, 0]
    if count > 0:
        for i in range(start, start + count - 1):
            constraint = make_arena_constraint(arenas.contacts[e, i], body)
            store_arena_constraint(arenas.arena_constraints, e, i * ARENA_CONSTRAINT_WORDS, constraint)
        body = solve_arena_penetrations(arenas.arena_constraints, e, start, count - 1, body)
        body = solve_single_contact(arenas.contacts[e, start + count - 1], body)
        store_body(arenas.bodies, e, 0, body)


@wp.func
def add_bounce(arenas: Arenas, e: int, count: int, arena: ArenaGeometry, position: wp.vec3, lanes: Lanes) -> int:
    """Appends the contacts of the ball with the arena to the `count` contacts that are there: each pushes the ball out, and one
    more, the mean of all, bounces it. Returns the new count, on lane 0."""
    count, touch = add_ball_contacts(arena, position, arenas.contacts, e, count, lanes, arenas.lane_touches)
    if touch.contacts > 0:
        many = float(touch.contacts)
        mean = Contact()
        mean.a = BALL
        mean.b = ARENA
        mean.normal = touch.normals / many
        mean.arm_a = mean.normal * (-touch.arms / many)
        mean.friction = BALL_FRICTION
        mean.restitution = BALL_RESTITUTION
        mean.distance = 1.0
        arenas.contacts[e, count] = mean
        count += 1
    return count
