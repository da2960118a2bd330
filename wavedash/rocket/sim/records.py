"""What the kernels read and write: the records of the game state, and what a car, a ball and their contacts remember.

`Car` and `BallRecord` have the fields of `wavedash.rocket.state`, in the same order and at the same places in memory, so that a kernel
works on the tensors that tasks see.
"""
from __future__ import annotations

from dataclasses import fields
from math import prod
from typing import Any

import torch
import warp as wp
from torch import Tensor

from wavedash.rocket.state import Ball, Cars, Events, Game, GameState, Pads

vec8 = wp.types.vector(length=8, dtype=wp.float32)
vec34 = wp.types.vector(length=34, dtype=wp.float32)
vec34i = wp.types.vector(length=34, dtype=wp.int32)

_TYPES: dict[tuple[torch.dtype, tuple[int, ...]], Any] = {
    (torch.float32, ()): wp.float32,
    (torch.float32, (3,)): wp.vec3,
    (torch.float32, (3, 3)): wp.mat33,
    (torch.float32, (8,)): vec8,
    (torch.float32, (34,)): vec34,
    (torch.int32, ()): wp.int32,
    (torch.int32, (2,)): wp.vec2i,
    (torch.int32, (34,)): vec34i,
    (torch.bool, ()): wp.bool,
    (torch.bool, (4,)): wp.vec4ub,
}


def _record(name: str, part: type) -> Any:
    """A Warp struct laid out like a part of the game state."""
    types = {f.name: _TYPES[f.metadata["dtype"], f.metadata["shape"]] for f in fields(part)}
    return wp.struct(type(name, (), {"__annotations__": types, "__module__": __name__, "__doc__": part.__doc__}))


Car = _record("Car", Cars)
BallRecord = _record("BallRecord", Ball)
PadRecord = _record("PadRecord", Pads)
GameRecord = _record("GameRecord", Game)
EventRecord = _record("EventRecord", Events)
_STRUCTS = {"ball": BallRecord, "cars": Car, "pads": PadRecord, "game": GameRecord, "events": EventRecord}


def view(state: GameState, part: str) -> wp.array:
    """Warp's view over a part of all records: [E] or, for cars and events, [E, C]. Nothing is copied."""
    places = [(offset, stride) for name, *_, offset, stride in GameState.layout(state.seats) if name == part]
    offset, stride = places[0]
    memory: Tensor = state.memory
    shape, strides = (state.arenas,), (memory.stride(0),)
    if part in GameState.PER_CAR:
        shape, strides = (*shape, state.seats), (*strides, stride)
    return wp.array(ptr=memory.data_ptr() + offset, dtype=_STRUCTS[part], shape=shape, strides=strides,
                    device=wp.device_from_torch(memory.device), copy=False)
