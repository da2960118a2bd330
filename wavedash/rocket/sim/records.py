"""What the kernels read and write: the records of the game state, and what a car, a ball and their contacts remember.

`Car`, `BallRecord`, `GameRecord` and `EventRecord` have the fields of `wavedash.rocket.state`, in the same order and at the
same places in a record. Kernels see records as words [E, W], in the very memory that tasks see. Records begin at multiples of
16 bytes, the most that a thread of a GPU loads at once.
"""
from __future__ import annotations

import ctypes
from dataclasses import fields
from typing import Any

import torch
import warp as wp

from wavedash.rocket.constants import PADS
from wavedash.rocket.state import Ball, Cars, Events, Game

vec8 = wp.types.vector(length=8, dtype=wp.float32)

_TYPES: dict[tuple[torch.dtype, tuple[int, ...]], Any] = {
    (torch.float32, ()): wp.float32,
    (torch.float32, (3,)): wp.vec3,
    (torch.float32, (3, 3)): wp.mat33,
    (torch.float32, (8,)): vec8,
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


def words_of(kind: Any) -> int:
    """Size of a struct in words of four bytes."""
    return ctypes.sizeof(kind.ctype) // 4


def room_of(kind: Any) -> int:
    """Words from one struct to the next."""
    return -(-words_of(kind) // 4) * 4


def loader(kind: Any) -> Any:
    """A function that loads a struct from the words of an arena."""
    size = 4 * words_of(kind)
    snippet = f"""
    {kind.native_name} out;
    const char* place = (const char*)words.data + (size_t)e * words.strides[0] + (size_t)first * 4;
#ifdef __CUDA_ARCH__
    #pragma unroll
    for (int at = 0; at < {size}; at += 16) {{
        const int4 piece = *(const int4*)(place + at);
        memcpy((char*)&out + at, &piece, at + 16 <= {size} ? 16 : {size % 16});
    }}
#else
    memcpy(&out, place, {size});
#endif
    return out;
    """

    def load(words: wp.array2d(dtype=wp.int32), e: int, first: int):
        return kind()

    load.__name__ = load.__qualname__ = f"load_{kind.key.lower()}"
    return wp.func_native(snippet)(load)


def storer(kind: Any) -> Any:
    """The way back. Bytes behind the last field, which belong to nobody, are zero."""
    size = 4 * words_of(kind)
    used = max(getattr(kind.ctype, name).offset + getattr(kind.ctype, name).size for name, _ in kind.ctype._fields_)
    mask = (1 << 8 * (used - size + 4)) - 1
    snippet = f"""
    char* place = (char*)words.data + (size_t)e * words.strides[0] + (size_t)first * 4;
    int last;
    memcpy(&last, (const char*)&value + {size - 4}, 4);
    last &= (int)0x{mask:x}u;
#ifdef __CUDA_ARCH__
    #pragma unroll
    for (int at = 0; at < {size}; at += 16) {{
        int4 piece = make_int4(0, 0, 0, 0);
        memcpy(&piece, (const char*)&value + at, at + 16 <= {size} ? 16 : {size % 16});
        if (at + 16 >= {size})
            memcpy((char*)&piece + {(size - 4) % 16}, &last, 4);
        *(int4*)(place + at) = piece;
    }}
#else
    memcpy(place, &value, {size});
    memcpy(place + {size - 4}, &last, 4);
#endif
    """

    def store(words: wp.array2d(dtype=wp.int32), e: int, first: int, value: Any): ...

    store.__name__ = store.__qualname__ = f"store_{kind.key.lower()}"
    store.__annotations__["value"] = kind
    return wp.func_native(snippet)(store)


load_car, store_car = loader(Car), storer(Car)
load_ball, store_ball = loader(BallRecord), storer(BallRecord)
load_game, store_game = loader(GameRecord), storer(GameRecord)
load_event, store_event = loader(EventRecord), storer(EventRecord)

# Where the parts of a record begin, in words; `test_records` compares them with the state's own layout.
BALL_AT = wp.constant(0)
BALL_MOTION_WORD = wp.constant(BallRecord.ctype.velocity.offset // 4)
"""Velocity and spin"""
CARS_AT = wp.constant(room_of(BallRecord))
CAR_WORDS = wp.constant(room_of(Car))
ROTATION_WORD = wp.constant(Car.ctype.rotation.offset // 4)
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
EVENT_WORDS = wp.constant(room_of(EventRecord))
PAD_COUNT = wp.constant(len(PADS))
GOAL_WORD = wp.constant(words_of(GameRecord) - 1)
"""Of a game: the team that scored"""


@wp.func
def car_at(seat: int) -> int:
    """Of the car in a seat."""
    return CARS_AT + CAR_WORDS * seat


@wp.func
def pads_at(seats: int) -> int:
    """Of the pads: timers first, then who holds them."""
    return CARS_AT + CAR_WORDS * seats


@wp.func
def game_at(seats: int) -> int:
    """Of clock, score and goal."""
    return pads_at(seats) + 2 * PAD_COUNT


@wp.func
def event_at(seats: int, seat: int) -> int:
    """Of what a car did."""
    return game_at(seats) + GOAL_WORD + 1 + EVENT_WORDS * seat


@wp.func
def vector_at(numbers: wp.array2d(dtype=wp.float32), e: int, first: int) -> wp.vec3:
    """Three numbers; where a record of the ball or a car begins, its position."""
    return wp.vec3(numbers[e, first], numbers[e, first + 1], numbers[e, first + 2])


@wp.func
def is_present(words: wp.array2d(dtype=wp.int32), e: int, seat: int) -> bool:
    """Whether someone sits there."""
    return (words[e, car_at(seat) + PRESENT_WORD] >> (8 * PRESENT_BYTE)) & 255 != 0


@wp.func
def is_driven(words: wp.array2d(dtype=wp.int32), e: int, seat: int) -> bool:
    """Whether someone sits there whose car is not demolished."""
    demoed = (words[e, car_at(seat) + DEMOED_WORD] >> (8 * DEMOED_BYTE)) & 255
    return is_present(words, e, seat) and demoed == 0


@wp.func
def note_contact(words: wp.array2d(dtype=wp.int32), numbers: wp.array2d(dtype=wp.float32), e: int, seat: int, normal: wp.vec3):
    """A car touches the arena."""
    at = car_at(seat)
    words[e, at + CONTACT_WORD] = words[e, at + CONTACT_WORD] | (1 << (8 * CONTACT_BYTE))
    for k in range(3):
        numbers[e, at + CONTACT_NORMAL_WORD + k] = normal[k]
