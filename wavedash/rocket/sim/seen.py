"""What kernels of parts see of a step: views of the game state, and what several of them ask of it.

Arithmetic is in the order of the classes and without fused operations, so that decisions are theirs bit for bit.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import FLIP_WINDOW
from wavedash.rocket.measures.common import WHEEL_REACH, WHEEL_SIDE
from wavedash.rocket.state import GameState

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

Flags = wp.array2d(dtype=wp.bool)
Numbers = wp.array2d(dtype=wp.int32)


@wp.struct
class Seen:
    """Views of the game state [E, C], and of that before the step."""

    clock: wp.array(dtype=wp.int32)
    goal: wp.array(dtype=wp.int32)
    ball: wp.array(dtype=wp.vec3)
    ball_velocity: wp.array(dtype=wp.vec3)
    ball_before: wp.array(dtype=wp.vec3)
    ball_velocity_before: wp.array(dtype=wp.vec3)
    position: wp.array2d(dtype=wp.vec3)
    rotation: wp.array2d(dtype=wp.mat33)
    contact_normal: wp.array2d(dtype=wp.vec3)
    air_time: wp.array2d(dtype=wp.float32)
    """Seconds since the jump ended"""
    air_time_before: wp.array2d(dtype=wp.float32)
    flip_time: wp.array2d(dtype=wp.float32)
    team: wp.array2d(dtype=wp.int32)
    hit_tick: wp.array2d(dtype=wp.int32)
    touches: wp.array2d(dtype=wp.int32)
    present: wp.array2d(dtype=wp.bool)
    demolished: wp.array2d(dtype=wp.bool)
    on_ground: wp.array2d(dtype=wp.bool)
    has_contact: wp.array2d(dtype=wp.bool)
    flipped: wp.array2d(dtype=wp.bool)
    flipped_before: wp.array2d(dtype=wp.bool)
    double_jumped: wp.array2d(dtype=wp.bool)
    double_jumped_before: wp.array2d(dtype=wp.bool)


@wp.func
def is_alive(seen: Seen, e: int, c: int) -> bool:
    return seen.present[e, c] and not seen.demolished[e, c]


@wp.func
def is_touching(seen: Seen, e: int, c: int) -> bool:
    return seen.touches[e, c] > 0 and seen.present[e, c]


@wp.func
def others_touch(seen: Seen, e: int, c: int) -> bool:
    found = bool(False)
    for other in range(seen.team.shape[1]):
        if other != c and is_touching(seen, e, other):
            found = True
    return found


@wp.func
def up_axis(seen: Seen, e: int, c: int) -> wp.vec3:
    rotation = seen.rotation[e, c]
    return wp.vec3(rotation[0, 2], rotation[1, 2], rotation[2, 2])


@wp.func
def wheels_at_ball(seen: Seen, e: int, c: int) -> bool:
    way = seen.ball[e] - seen.position[e, c]
    distance = wp.length(way)
    return wp.dot(up_axis(seen, e, c), way) < wp.static(WHEEL_SIDE) * distance and distance < wp.static(WHEEL_REACH)


@wp.func
def stands(seen: Seen, e: int, c: int) -> bool:
    return seen.on_ground[e, c] and not wheels_at_ball(seen, e, c)


@wp.func
def flip_left(flipped: bool, double_jumped: bool, air_time: float) -> bool:
    return not (flipped or double_jumped) and air_time < wp.static(FLIP_WINDOW)


@wp.func
def is_on_roof(seen: Seen, e: int, c: int) -> bool:
    lies = seen.has_contact[e, c] and not seen.on_ground[e, c]
    return lies and wp.dot(up_axis(seen, e, c), seen.contact_normal[e, c]) < -0.5


@wp.func
def attack(seen: Seen, e: int, c: int) -> float:
    return wp.where(seen.team[e, c] == 0, 1.0, -1.0)


def seen_of(state: GameState, previous: GameState) -> Seen:
    """Returns what kernels see of a step from `previous` to `state`: it stays the same for the life of both."""
    cars, before, seen = state.cars, previous.cars, Seen()
    plain = {"clock": state.game.tick, "goal": state.game.goal, "air_time": cars.air_time_since_jump,
             "air_time_before": before.air_time_since_jump, "flip_time": cars.flip_time, "team": cars.team,
             "hit_tick": cars.ball_hit_tick, "touches": state.events.touches, "present": cars.present,
             "demolished": cars.is_demoed, "on_ground": cars.on_ground, "has_contact": cars.has_contact,
             "flipped": cars.has_flipped, "flipped_before": before.has_flipped, "double_jumped": cars.has_double_jumped,
             "double_jumped_before": before.has_double_jumped}
    vectors = {"ball": state.ball.position, "ball_velocity": state.ball.velocity, "ball_before": previous.ball.position,
               "ball_velocity_before": previous.ball.velocity,
               "position": cars.position, "contact_normal": cars.contact_normal}
    for name, x in plain.items():
        setattr(seen, name, wp.from_torch(x))
    for name, x in vectors.items():
        setattr(seen, name, wp.from_torch(x, dtype=wp.vec3))
    seen.rotation = wp.from_torch(cars.rotation, dtype=wp.mat33)
    return seen
