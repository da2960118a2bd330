"""The records of the game state as Warp structs, and where they lie in memory.

`Car`, `BallRecord`, `GameRecord` and `EventRecord` have the fields of `wavedash.rocket.state`, in the same order and at the
same places in a record. Kernels see records as words [E, W], in the very memory that tasks see. Records begin at multiples of
16 bytes, the most that a thread of a GPU loads at once.
"""
from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
import warp as wp

from wavedash.rocket.constants import PADS
from wavedash.rocket.sim.kernels.struct_io import loader, storer, stride_of, words_of
from wavedash.rocket.state import CONTROLS, Ball, Cars, Events, Game

Controls = wp.struct(type("Controls", (), {
    "__annotations__": dict.fromkeys(CONTROLS, wp.float32), "__module__": __name__,
    "__doc__": "Controls of a car by name, in the order of `CONTROLS`: sticks from -1 to 1, buttons 0 or 1."}))

_TYPES: dict[tuple[torch.dtype, tuple[int, ...]], Any] = {
    (torch.float32, ()): wp.float32,
    (torch.float32, (3,)): wp.vec3,
    (torch.float32, (3, 3)): wp.mat33,
    (torch.float32, (len(CONTROLS),)): Controls,
    (torch.int32, ()): wp.int32,
    (torch.int32, (2,)): wp.vec2i,
    (torch.bool, ()): wp.bool,
    (torch.bool, (4,)): wp.vec4ub,
}


def _record(name: str, part: type) -> Any:
    """A Warp struct laid out like a part of the game state."""
    types = {f.name: _TYPES[f.metadata["dtype"], f.metadata["shape"]] for f in fields(part)}
    return wp.struct(type(name, (), {"__annotations__": types, "__module__": __name__, "__doc__": part.__doc__}))


Car = _record("Car", Cars)
BallRecord = _record("BallRecord", Ball)
GameRecord = _record("GameRecord", Game)
EventRecord = _record("EventRecord", Events)


@wp.struct
class Pose:
    """The beginning of the record of a ball or car."""

    position: wp.vec3
    rotation: wp.mat33


@wp.struct
class Motion:
    """The velocities of a ball or car, which follow the pose in its record."""

    velocity: wp.vec3
    angular_velocity: wp.vec3


load_car, store_car = loader(Car), storer(Car)
load_ball, store_ball = loader(BallRecord), storer(BallRecord)
load_game, store_game = loader(GameRecord), storer(GameRecord)
load_event, store_event = loader(EventRecord), storer(EventRecord)
load_pose, load_motion, load_controls = loader(Pose), loader(Motion), loader(Controls)

# Where the parts of a record begin, in words; `test_records` compares them with the state's own layout.
BALL_AT = wp.constant(0)
MOTION_WORD = wp.constant(stride_of(Pose))
CONTROLS_WORDS = wp.constant(stride_of(Controls))
CARS_AT = wp.constant(stride_of(BallRecord))
CAR_WORDS = wp.constant(stride_of(Car))
BOOST_WORD = wp.constant(Car.ctype.boost.offset // 4)
HITBOX_WORD = wp.constant(Car.ctype.hitbox.offset // 4)
TEAM_WORD = wp.constant(Car.ctype.team.offset // 4)
HIT_TICK_WORD = wp.constant(Car.ctype.ball_hit_tick.offset // 4)
PRESENT_WORD = wp.constant(Car.ctype.present.offset // 4)
PRESENT_BYTE = wp.constant(Car.ctype.present.offset % 4)
DEMOED_WORD = wp.constant(Car.ctype.is_demoed.offset // 4)
DEMOED_BYTE = wp.constant(Car.ctype.is_demoed.offset % 4)
CONTACT_NORMAL_WORD = wp.constant(Car.ctype.contact_normal.offset // 4)
CONTACT_WORD = wp.constant(Car.ctype.has_contact.offset // 4)
CONTACT_BYTE = wp.constant(Car.ctype.has_contact.offset % 4)
EVENT_WORDS = wp.constant(stride_of(EventRecord))
PAD_COUNT = wp.constant(len(PADS))
GOAL_WORD = wp.constant(words_of(GameRecord) - 1)
"""The word of a GameRecord that holds the team that scored"""


@wp.func
def car_at(seat: int) -> int:
    """First word of the car in a seat."""
    return CARS_AT + CAR_WORDS * seat


@wp.func
def pads_at(seats: int) -> int:
    """First word of the pads: their timers, then the seats of the cars that hold them."""
    return CARS_AT + CAR_WORDS * seats


@wp.func
def game_at(seats: int) -> int:
    """First word of clock, score and goal."""
    return pads_at(seats) + 2 * PAD_COUNT


@wp.func
def event_at(seats: int, seat: int) -> int:
    """First word of the events of the car in a seat."""
    return game_at(seats) + GOAL_WORD + 1 + EVENT_WORDS * seat


@wp.func
def load_position(words: wp.array2d(dtype=wp.int32), e: int, first: int) -> wp.vec3:
    """Position of the ball or car whose record begins at word `first`."""
    return load_pose(words, e, first).position


@wp.func
def is_present(words: wp.array2d(dtype=wp.int32), e: int, seat: int) -> bool:
    """Whether a seat is taken."""
    return (words[e, car_at(seat) + PRESENT_WORD] >> (8 * PRESENT_BYTE)) & 255 != 0


@wp.func
def is_active(words: wp.array2d(dtype=wp.int32), e: int, seat: int) -> bool:
    """Whether a seat is taken and its car is not demolished."""
    demoed = (words[e, car_at(seat) + DEMOED_WORD] >> (8 * DEMOED_BYTE)) & 255
    return is_present(words, e, seat) and demoed == 0


@wp.func
def store_arena_contact(
    words: wp.array2d(dtype=wp.int32), floats: wp.array2d(dtype=wp.float32), e: int, seat: int, normal: wp.vec3
):
    """Writes that a car touches the arena, and the normal there."""
    at = car_at(seat)
    words[e, at + CONTACT_WORD] = words[e, at + CONTACT_WORD] | (1 << (8 * CONTACT_BYTE))
    for k in range(3):
        floats[e, at + CONTACT_NORMAL_WORD + k] = normal[k]
