"""Respawns of demolished cars."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import BOOST_START, RESPAWN_SPOTS
from wavedash.rocket.sim.collision.bodies import BODY_WORDS, load_body
from wavedash.rocket.sim.constants import DT, RESPAWN_Z
from wavedash.rocket.sim.kernels.memory import Arenas
from wavedash.rocket.sim.kernels.records import Car, car_at, load_car, store_car
from wavedash.rocket.sim.mechanics.suspension import DRIVETRAIN_WORDS, reset_drivetrain

wp.set_module_options({"enable_backward": False})

RESPAWN_X, RESPAWN_Y = wp.constant(wp.vec4(*(spot.x for spot in RESPAWN_SPOTS))), RESPAWN_SPOTS[0].y
"""Spots of the blue team, uu; those of the orange team are rotated by half a turn"""


@wp.func
def wait_for_respawn(arenas: Arenas, e: int, seat: int, now: int):
    """A demolished car comes back after three seconds, on one of four spots that the clock chooses. The timer starts in the
    tick after the demolition."""
    if load_body(arenas.bodies, e, (1 + seat) * BODY_WORDS).inverse_mass > 0.0:
        return
    reset_drivetrain(arenas.drivetrain, e, seat * DRIVETRAIN_WORDS)
    car = load_car(arenas.words, e, car_at(seat))
    car.demo_timer = wp.max(car.demo_timer - DT, 0.0)
    if car.demo_timer == 0.0:
        team = car.team
        hitbox = car.hitbox
        side = wp.where(team == 0, 1.0, -1.0)
        x = RESPAWN_X[(now + 1 + seat) % 4]
        car = Car()
        car.team = team
        car.hitbox = hitbox
        car.present = True
        car.on_ground = True
        car.contact_car = -1
        car.ball_hit_tick = -1
        car.ball_hit_impulse_tick = -1
        car.boost = BOOST_START
        car.position = wp.vec3(x, RESPAWN_Y * side, RESPAWN_Z)
        car.rotation = wp.mat33(0.0, -side, 0.0, side, 0.0, 0.0, 0.0, 0.0, 1.0)
    store_car(arenas.words, e, car_at(seat), car)
