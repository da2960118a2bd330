"""One tick: the list of its stages, in the order in which they happen.

The order is RocketSim's: wheels and controls of each car, contacts where bodies are, impulses, motion, capped speeds, hits and
bumps, pads, goals. `stages` is the only place where it is written. `kernels/launches.py` makes two programs of it: for a CPU,
one loop that runs all ticks of an arena while it is in the cache; for a GPU, one launch per stage over the list of its class.

Every function over cars has the arguments (model, arenas, e, c, late, lanes): `e` is the arena, `c` the seat, `late` tells that
the controls of the previous step are still in force, and `lanes` are the cooperative threads that share the car. Every function
over arenas has (model, arenas, e, lanes). A stage that sorts returns the class in which the car or arena goes on. A stage over
cars never reads what a stage over cars writes about another car, so that successive ones may run car by car.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import warp as wp

from wavedash.rocket.sim.classes import (
    AT_ARENA,
    BALL_BOUNCING,
    COLLIDING,
    DRIVING,
    FLYING,
    IN_CONTACT,
    MESH_IN_REACH,
    NEAR_MESH,
)
from wavedash.rocket.sim.collision.arena_contacts import (
    find_ball_contacts,
    find_car_contacts,
    solve_ball_contacts,
    solve_car_contacts,
)
from wavedash.rocket.sim.collision.body_contacts import collide_bodies
from wavedash.rocket.sim.collision.broad_phase import classify_car, find_close_bodies, find_mesh_in_reach, rule_out_mesh
from wavedash.rocket.sim.kernels.lanes import Lanes
from wavedash.rocket.sim.kernels.memory import Arenas, Model
from wavedash.rocket.sim.kernels.records import (
    BALL_AT,
    PRESENT_WORD,
    car_at,
    game_at,
    is_active,
    is_present,
    load_ball,
    load_game,
    store_ball,
    store_game,
)
from wavedash.rocket.sim.kernels.struct_io import prefetch
from wavedash.rocket.sim.mechanics.ball import finish_ball, solved_ball
from wavedash.rocket.sim.mechanics.car import step_car_in_contact, step_driving_car, step_flying_car
from wavedash.rocket.sim.mechanics.pickups import take_pad
from wavedash.rocket.sim.mechanics.respawning import wait_for_respawn
from wavedash.rocket.sim.mechanics.scoring import load_scoring, store_scoring, update_score


class Over(NamedTuple):
    """What a stage runs over: cars or arenas, all of them or those of one class."""

    cars: bool
    class_number: int | None
    """One of those in `classes.py`; None: all cars or arenas"""


def each_car(car_class: int | None = None) -> Over:
    return Over(True, car_class)


def each_arena(arena_class: int | None = None) -> Over:
    return Over(False, arena_class)


class Stage(NamedTuple):
    """One stage of a tick."""

    function: Any
    """A `wp.func` with the arguments listed above"""
    over: Over
    sorts_into: tuple[int, ...] = ()
    """Classes in which cars or arenas may go on; (): they stay in theirs"""
    lanes: bool = False
    """Cooperative threads share the triangles around each car or ball"""
    diverges: bool = False
    """The threads of a GPU's warp take different branches, so that few of them work at the same time"""
    shortcut: bool = False
    """On a GPU it saves the lanes of the next stage work that would have the same result; a CPU skips it"""


def stages(seats: int) -> tuple[Stage, ...]:
    """The stages of a tick, for arenas with a number of seats."""
    return (
        Stage(find_close_bodies, each_arena(), sorts_into=(BALL_BOUNCING, COLLIDING)),
        Stage(classify_car, each_car(), sorts_into=(FLYING, DRIVING, IN_CONTACT, NEAR_MESH)),
        Stage(rule_out_mesh, each_car(NEAR_MESH), sorts_into=(FLYING, DRIVING, IN_CONTACT, MESH_IN_REACH), shortcut=True),
        Stage(find_mesh_in_reach, each_car(MESH_IN_REACH), sorts_into=(FLYING, DRIVING, IN_CONTACT), lanes=True),
        Stage(step_flying_car, each_car(FLYING)),
        Stage(step_driving_car, each_car(DRIVING)),
        Stage(step_car_in_contact, each_car(IN_CONTACT), sorts_into=(AT_ARENA,)),
        Stage(find_car_contacts, each_car(AT_ARENA), lanes=True),
        Stage(solve_car_contacts, each_car(AT_ARENA)),
        Stage(find_ball_contacts, each_arena(BALL_BOUNCING), lanes=True),
        Stage(solve_ball_contacts, each_arena(BALL_BOUNCING)),
        Stage(collide_bodies(seats), each_arena(COLLIDING), diverges=True),
        Stage(finish_tick, each_arena()),
    )


@wp.func
def finish_tick(model: Model, arenas: Arenas, e: int, lanes: Lanes) -> bool:
    """The last stage: the ball moves, demolished cars wait, pads are taken, goals are counted. Returns whether the arena goes
    on with the next tick: a goal stops it for the rest of the step."""
    seats = arenas.seats
    for c in range(seats):
        prefetch(arenas.words, e, car_at(c))
        prefetch(arenas.words, e, car_at(c) + PRESENT_WORD)
    prefetch(arenas.held_pad, e, 0)
    game = load_game(arenas.words, e, game_at(seats))
    ball = load_ball(arenas.words, e, BALL_AT)
    scoring = load_scoring(arenas.scoring, e, 0)
    collision_mask = arenas.collision_mask[e]
    ticks_done = arenas.ticks_done[e] + 1
    if game.goal >= 0:
        return False
    ball = finish_ball(ball, solved_ball(arenas, e, ball, collision_mask))
    store_ball(arenas.words, e, BALL_AT, ball)
    arenas.ticks_done[e] = ticks_done
    for c in range(seats):
        if is_present(arenas.words, e, c) and not is_active(arenas.words, e, c):
            wait_for_respawn(arenas, e, c, game.tick)
        take_pad(model, arenas, e, c, ticks_done)
    scoring, game = update_score(scoring, game, ball, arenas.words, e, seats)
    game.tick += 1
    store_game(arenas.words, e, game_at(seats), game)
    store_scoring(arenas.scoring, e, 0, scoring)
    return game.goal < 0
