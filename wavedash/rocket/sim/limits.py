"""No invalid state leaves the simulator: no NaN, nothing outside the field.

Each arena is checked before and after every step. An invalid one begins again with a kick-off, and is counted. The check before
a step protects the kernels, which index memory by numbers of the state, from whatever users write into it.
"""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import torch
import warp as wp

from wavedash.rocket.constants import (
    BACK_NET_Y,
    BACK_WALL_Y,
    BOOST_MAX,
    CEILING_Z,
    CORNER_LENGTH,
    GOAL_HALF_WIDTH,
    GOAL_HEIGHT,
    HITBOXES,
    SIDE_WALL_X,
)
from wavedash.rocket.sim.kernels.records import (
    BALL_AT,
    CAR_WORDS,
    CARS_AT,
    HITBOX_WORD,
    Controls,
    car_at,
    event_at,
    game_at,
    is_present,
    load_ball,
    load_car,
    load_event,
    load_game,
    pads_at,
    store_ball,
    store_car,
    store_event,
    store_game,
)
from wavedash.rocket.state import GameState

wp.set_module_options({"enable_backward": False})

WALL_SLACK = 50.0
"""uu that a body's origin may be behind a wall: in games cars get half as far"""
SKEW = wp.constant(0.01)
"""How far the axes of a rotation may be from right angles and unit length"""
WALL = wp.constant(SIDE_WALL_X + WALL_SLACK)
END = wp.constant(BACK_WALL_Y + WALL_SLACK)
FLOOR = wp.constant(-WALL_SLACK)
CEILING = wp.constant(CEILING_Z + WALL_SLACK)
CORNER = wp.constant(SIDE_WALL_X + BACK_WALL_Y - CORNER_LENGTH + WALL_SLACK * 2**0.5)
NET = wp.constant(BACK_NET_Y + WALL_SLACK)
POST = wp.constant(GOAL_HALF_WIDTH + WALL_SLACK)
CROSSBAR = wp.constant(GOAL_HEIGHT + WALL_SLACK)
INT_MIN, INT_MAX = np.iinfo(np.int32).min, np.iinfo(np.int32).max

SPEED = (-1.0e4, 1.0e4)
SPIN = (-100.0, 100.0)
UNIT = (-1.01, 1.01)
SECONDS = (-1.0, 1.0e6)
DISTANCE = (-1.0e5, 1.0e5)
"""Limits of positions, which the walls limit further, and of what is stored about hits, on which no physics depends"""
LIMITS = {
    "ball.position": DISTANCE, "ball.rotation": UNIT, "ball.velocity": SPEED, "ball.angular_velocity": SPIN,
    "cars.position": DISTANCE, "cars.rotation": UNIT, "cars.velocity": SPEED, "cars.angular_velocity": SPIN,
    "cars.boost": (0.0, BOOST_MAX), "cars.handbrake": (0.0, 1.0), "cars.controls": UNIT,
    "cars.boost_time": SECONDS, "cars.supersonic_time": SECONDS, "cars.air_time": SECONDS, "cars.air_time_since_jump": SECONDS,
    "cars.jump_time": SECONDS, "cars.flip_time": SECONDS, "cars.auto_flip_timer": SECONDS, "cars.demo_timer": SECONDS,
    "cars.contact_cooldown": SECONDS, "pads.timer": SECONDS,
    "cars.flip_torque": UNIT, "cars.auto_flip_torque": UNIT, "cars.contact_normal": UNIT,
    "cars.ball_hit_offset": DISTANCE, "cars.ball_hit_position": DISTANCE, "cars.ball_hit_impulse": DISTANCE,
    "cars.team": (0, 1), "cars.hitbox": (0, len(HITBOXES) - 1),
}
"""The least and greatest valid value of the fields of a state. They are wider than what the game allows where a tick brings the
value back: speeds are capped. Integers that are not listed may be anything."""
SEATS = ("ball.last_touch", "cars.contact_car", "pads.locked_car")
"""Fields that hold the seat of a car, or -1 for none"""


@wp.struct
class StateLimits:
    """The limits of a valid state, and the kick-off that replaces an invalid one."""

    low: wp.array(dtype=wp.int32)
    """[W]: the least valid value of each word of a record, as `sortable` has it"""
    high: wp.array(dtype=wp.int32)
    """[W]: the greatest"""
    inverted: wp.array(dtype=wp.int32)
    """[W]: the bits that are inverted in a negative word before it is compared as an integer; 0 where it is an integer"""
    kickoff: wp.array2d(dtype=wp.int32)
    """[1, W]: the record of an arena at a kick-off, with all seats taken"""


def sortable(x: float) -> int:
    """The bits of a float as an integer, in the same order as the floats. Zero becomes -0.0, the lower of the two."""
    bits = int(np.float32(x or -0.0).view(np.int32))
    return bits ^ (bits >> 31 & INT_MAX)


def state_limits(kickoff: GameState) -> Any:
    """The limits as kernels read them. An invalid arena begins again with the state of the only arena of `kickoff`."""
    device = wp.device_from_torch(kickoff.memory.device)
    table: Any = StateLimits()
    words = kickoff.memory.shape[1]
    low, high, inverted = (np.full(words, bits, np.int32) for bits in (INT_MIN, INT_MAX, 0))
    for part, name, dtype, shape, offset, stride in GameState.layout(kickoff.seats):
        field, is_float = f"{part}.{name}", dtype == torch.float32
        limits = (-1, kickoff.seats - 1) if field in SEATS else LIMITS.get(field)
        if is_float or limits:
            for seat in range(kickoff.seats if stride else 1):
                first = (offset + seat * stride) // 4
                where = slice(first, first + prod(shape))
                low[where], high[where] = (sortable(x) for x in LIMITS[field]) if is_float else limits
                inverted[where] = INT_MAX if is_float else 0
    table.low, table.high, table.inverted = (wp.array(column, device=device) for column in (low, high, inverted))
    table.kickoff = wp.from_torch(kickoff.memory)
    return table


# Floats are compared as integers, which have the same order once all bits but the sign of negative ones are inverted. So NaN
# lies beyond infinity, and a CPU compares many words at once.
ARE_WITHIN = """
const int* word = (const int*)((const char*)words.data + (size_t)e * words.strides[0]);
const int* low = (const int*)limits.low.data;
const int* high = (const int*)limits.high.data;
const int* inverted = (const int*)limits.inverted.data;
int wrong = 0;
int w = start;
#ifdef __CUDA_ARCH__
for (; w % 4 == 0 && w + 4 <= end; w += 4) {
    const int4 x = *(const int4*)(word + w), l = *(const int4*)(low + w), h = *(const int4*)(high + w);
    const int4 t = *(const int4*)(inverted + w);
    const int a = x.x ^ (x.x >> 31 & t.x), b = x.y ^ (x.y >> 31 & t.y);
    const int c = x.z ^ (x.z >> 31 & t.z), d = x.w ^ (x.w >> 31 & t.w);
    wrong |= (a < l.x) | (a > h.x) | (b < l.y) | (b > h.y) | (c < l.z) | (c > h.z) | (d < l.w) | (d > h.w);
}
#endif
for (; w < end; ++w) {
    const int x = word[w] ^ (word[w] >> 31 & inverted[w]);
    wrong |= (x < low[w]) | (x > high[w]);
}
return wrong == 0;
"""


@wp.func_native(ARE_WITHIN)
def are_within(limits: StateLimits, words: wp.array2d(dtype=wp.int32), e: int, start: int, end: int) -> bool:
    """Whether all words from `start` to `end` are within their limits."""


@wp.func
def sanitised(controls: Controls) -> Controls:
    """Controls with every axis between -1 and 1."""
    controls.throttle = sanitised_axis(controls.throttle)
    controls.steer = sanitised_axis(controls.steer)
    controls.pitch = sanitised_axis(controls.pitch)
    controls.yaw = sanitised_axis(controls.yaw)
    controls.roll = sanitised_axis(controls.roll)
    controls.jump = sanitised_axis(controls.jump)
    controls.boost = sanitised_axis(controls.boost)
    controls.handbrake = sanitised_axis(controls.handbrake)
    return controls


@wp.func
def sanitised_axis(value: float) -> float:
    """A value between -1 and 1; NaN and infinity become 0."""
    if wp.isfinite(value):
        return wp.clamp(value, -1.0, 1.0)
    return 0.0


@wp.func
def reset_if_invalid(
    limits: StateLimits, words: wp.array2d(dtype=wp.int32), floats: wp.array2d(dtype=wp.float32), e: int, seats: int
) -> bool:
    """Restarts the arena if it is invalid, and returns whether it was."""
    if is_valid(limits, words, floats, e, seats):
        return False
    reset_to_kickoff(limits, words, e, seats)
    return True


@wp.func
def is_valid(
    limits: StateLimits, words: wp.array2d(dtype=wp.int32), floats: wp.array2d(dtype=wp.float32), e: int, seats: int
) -> bool:
    """Whether the state of an arena can occur in the game. An empty seat may hold anything but a hitbox that does not exist."""
    if not (are_within(limits, words, e, BALL_AT, CARS_AT) and is_on_field(floats, e, BALL_AT)):
        return False
    for c in range(seats):
        first = car_at(c)
        if is_present(words, e, c):
            if not (are_within(limits, words, e, first, first + CAR_WORDS) and is_on_field(floats, e, first)):
                return False
        elif not are_within(limits, words, e, first + HITBOX_WORD, first + HITBOX_WORD + 1):
            return False
    return are_within(limits, words, e, pads_at(seats), game_at(seats))


@wp.func
def is_on_field(floats: wp.array2d(dtype=wp.float32), e: int, first: int) -> bool:
    """Whether the ball or car whose record begins at word `first` is on the field or in a goal, and its rotation is one."""
    x = wp.abs(floats[e, first])
    y = wp.abs(floats[e, first + 1])
    z = floats[e, first + 2]
    on_field = x < WALL and y < END and x + y < CORNER and z > FLOOR and z < CEILING
    in_goal = x < POST and y < NET and z > FLOOR and z < CROSSBAR
    forward = wp.vec3(floats[e, first + 3], floats[e, first + 6], floats[e, first + 9])
    right = wp.vec3(floats[e, first + 4], floats[e, first + 7], floats[e, first + 10])
    up = wp.vec3(floats[e, first + 5], floats[e, first + 8], floats[e, first + 11])
    skew = wp.abs(wp.dot(forward, forward) - 1.0) + wp.abs(wp.dot(right, right) - 1.0) + wp.abs(wp.dot(forward, right))
    return (on_field or in_goal) and skew < SKEW and wp.length_sq(wp.cross(forward, right) - up) < SKEW * SKEW


@wp.func
def reset_to_kickoff(limits: StateLimits, words: wp.array2d(dtype=wp.int32), e: int, seats: int):
    """Writes a kick-off. Seats, clock and score stay; a goal and the events of the failed step are taken back."""
    store_ball(words, e, BALL_AT, load_ball(limits.kickoff, 0, BALL_AT))
    for c in range(seats):
        before = load_car(words, e, car_at(c))
        car = load_car(limits.kickoff, 0, car_at(c))
        car.present = before.present
        store_car(words, e, car_at(c), car)
        store_event(words, e, event_at(seats, c), load_event(limits.kickoff, 0, event_at(seats, c)))
    for w in range(pads_at(seats), game_at(seats)):
        words[e, w] = limits.kickoff[0, w]
    game = load_game(words, e, game_at(seats))
    if game.goal >= 0:
        game.score[game.goal] = game.score[game.goal] - 1
        game.goal = -1
    store_game(words, e, game_at(seats), game)
